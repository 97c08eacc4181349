#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "data/image/decoded_pixels.hpp"

namespace speedo {

// How cameras say that an image is to be seen (EXIF 2.3, tag 0x0112): where the file's first row
// and first column belong.
//
//   1  top, left      2  top, right     3  bottom, right   4  bottom, left
//   5  left, top      6  right, top     7  right, bottom   8  left, bottom

// What a JPEG's APP1 marker says: nothing if it holds no EXIF, or that no orientation.
std::optional<int> exif_orientation(std::span<const std::byte> marker);
// The same of the EXIF alone, a TIFF header and what follows, as a PNG's eXIf chunk has it.
std::optional<int> tiff_orientation(std::span<const std::byte> tiff);

// Turns and mirrors the pixels as their orientation says, which is 1 afterwards; one that does not
// exist changes nothing.
void turn_upright(DecodedPixels& pixels);

}  // namespace speedo
