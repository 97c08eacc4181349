#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Rows of named numbers. Columns are in the order in which they came; a row may lack some.
struct LogTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::pair<std::string, double>>> rows;
};

struct LogTables {
  LogTable train, test;
  // What parse_log.py leaves out: NumIters, Seconds and `loss` of each line with the mean loss, and
  // NumIters, Seconds and LearningRate of each line with a rate.
  LogTable losses, rates;
};

// What a log of Caffe's form, with years in its dates or without, tells of a training: a row for
// each display ("Train net output") and each test ("Test net output"), with NumIters, Seconds since
// "Solving", and LearningRate, which the first row has of the second one. `name` stands for the
// file in errors; `year` is that of dates without one. Error: kData if no training begins in it.
Result<LogTables> read_log_tables(const std::string& text, const std::string& name, int year);

// For dates without one: the year in which the file was last written to, or this year.
int year_last_written(const std::filesystem::path& file);

// A line for each row below the columns' names, as Python writes them; empty for an empty table.
std::string to_csv(const LogTable& table, char delimiter);

}  // namespace speedo
