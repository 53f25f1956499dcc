// text: a text file as tokens: its bytes, or the ids of a tokenizer. The last 10 % are held out for
// evaluation, unless another file is (plan/data/text_file.h). Gives tokens and targets, ids
// [context]; targets are tokens shifted by one, or masked tokens.
#ifndef STAGECOACH_PLAN_DATA_TEXT_H_
#define STAGECOACH_PLAN_DATA_TEXT_H_

#include <string>

namespace stagecoach {

struct TextData {
  static constexpr const char* kKind = "text";
  std::string path;
  bool bytes = false;     // takes what plainly is not text as well
  std::string tokenizer;  // its file (stage/tokens/tokenizer.h); empty: bytes are tokens
  std::string test;       // the text to evaluate with; empty: a part of the other
  double masked = 0;      // share of masked tokens (plan/data/token_inputs.h); 0: none
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Text("path", path, "must name the text file to train on");
    visit.Flag("bytes", bytes);
    visit.Text("tokenizer", tokenizer);
    visit.Text("test", test);
    visit.Rate("masked", masked);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TEXT_H_
