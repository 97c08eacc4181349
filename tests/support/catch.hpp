#pragma once

// The only way in to Catch2, so that a move to version 3 touches one file.
#include <catch2/catch.hpp>
