// LeftOut: the files of a data folder that are not read, counted by ending and reason. So a user
// learns of data that the job does not train on.
// Ownership: a plain value.  Threads: thread-compatible.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_LEFT_OUT_H_
#define STAGECOACH_STAGE_DATA_FORMATS_LEFT_OUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace stagecoach {

class LeftOut {
 public:
  // Counts a file. `why`: the reason, if the name does not tell it.
  void Add(const std::string& name, const std::string& why = "");
  void Add(const LeftOut& others);
  bool empty() const { return counts_.empty(); }
  // "10 .bmp, a format that is not read: write PNG; 3 .txt"; the most frequent ones first,
  // kMostLeftOutKinds of them.
  std::string Text() const;

 private:
  std::map<std::pair<std::string, std::string>, int64_t> counts_;  // by ending and reason
};
inline constexpr size_t kMostLeftOutKinds = 8;

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_LEFT_OUT_H_
