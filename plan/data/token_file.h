// token_file: files of tokens that other programs made, told apart by their first bytes
// (plan/data/token_file_header.h). Gives the inputs of plan/data/token_inputs.h.
//   With `end`, each document of a Megatron file ends with it: it is put behind those that do not.
#ifndef STAGECOACH_PLAN_DATA_TOKEN_FILE_H_
#define STAGECOACH_PLAN_DATA_TOKEN_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "network/limits.h"
#include "plan/data/json_lines.h"

namespace stagecoach {

struct TokenFileData {
  static constexpr const char* kKind = "token_file";
  std::vector<std::string> files;
  std::vector<std::string> test;  // to evaluate with; none: a part of the others
  int64_t end = -1;               // the id at a document's end; -1: not given
  bool packed = false;            // gives document_starts
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Texts("files", files, kMostTokenFiles, "must name a file");
    visit.Texts("test", test, kMostTokenFiles, "must name a file");
    visit.Count("end", end, -1, kMaxVocabulary - 1);
    visit.Flag("packed", packed);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TOKEN_FILE_H_
