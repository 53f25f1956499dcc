// fuzz_replay TARGET FILE|FOLDER...: hands each file to the target, once; fails if there is none.
// fuzz_replay --write FOLDER: makes FOLDER/TARGET/* anew from real values (write_corpus.cc).
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/write_corpus.h"

int main(int argc, char** argv) {
  using namespace stagecoach;
  namespace fs = std::filesystem;
  if (argc == 3 && std::string(argv[1]) == "--write") {
    WriteCorpus(argv[2]);
    return 0;
  }
  const auto target = argc < 3 ? FuzzTargets().end() : FuzzTargets().find(argv[1]);
  if (target == FuzzTargets().end()) {
    std::cerr << "usage: fuzz_replay TARGET FILE|FOLDER... with one of";
    for (const auto& [name, run] : FuzzTargets()) std::cerr << " " << name;
    std::cerr << "\n";
    return 64;
  }
  std::vector<fs::path> files;
  for (int i = 2; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      files.push_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    if (!stream.is_open()) {
      std::cerr << file << ": cannot be read\n";
      return 1;
    }
    target->second(FuzzInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  }
  std::cout << target->first << ": " << files.size() << " inputs\n";
  return files.empty() ? 1 : 0;
}
