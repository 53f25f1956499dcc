// text: bytes of a text file as tokens; the last 10 % are held out for evaluation
// (plan/data/text_file.h). Gives tokens and targets, ids [context]; targets are tokens shifted by
// one.
#ifndef STAGECOACH_PLAN_DATA_TEXT_H_
#define STAGECOACH_PLAN_DATA_TEXT_H_

#include <string>

namespace stagecoach {

struct TextData {
  static constexpr const char* kKind = "text";
  std::string path;
  bool bytes = false;  // takes what plainly is not text as well
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("path", path, "must name the text file to train on");
    visit.Flag("bytes", bytes);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TEXT_H_
