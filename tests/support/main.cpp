#include "support/run_tests.hpp"

int main(int argc, char** argv) { return speedo::test::run_tests(argc, argv); }
