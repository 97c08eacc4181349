#pragma once

#include <string>
#include <vector>

namespace speedo::fuzz {

// Inputs that a target's parser takes, as this program's own writers make them: what a corpus
// begins with, and what goes on reaching the depths of a parser when its format changes.
struct Seed {
  std::string target;
  std::string bytes;
};

std::vector<Seed> record_seeds();   // what lies in the store
std::vector<Seed> dataset_seeds();  // data sets and images
std::vector<Seed> model_seeds();    // nets and their weights
std::vector<Seed> text_seeds();     // what people write
std::vector<Seed> network_seeds();  // what comes from other processes

std::vector<Seed> all_seeds();

// Names for them, as in the corpora.
std::string name_of(const Seed& seed);

// Writes each into FOLDER/TARGET.
void write_seeds(const std::string& folder);

// Numbers as targets read them (fuzz_input.hpp), and a piece behind its length.
std::string byte_text(unsigned value);
std::string piece_text(const std::string& piece);

}  // namespace speedo::fuzz
