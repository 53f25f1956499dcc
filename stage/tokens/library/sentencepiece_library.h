// SentencePiece's own library behind types of the standard library: its headers redefine
// absl::string_view, and its protobuf 3.14 clashes with ours. So only programs without protobuf
// link it: the one that trains tokenizers, and tests that compare.
// Ownership: LibraryTokenizer owns its model.  Threads: LibraryTokenizer is immutable.
// Errors:    an empty text is success, any other one the library's reason. It ends the process for
//            damaged models.
#ifndef STAGECOACH_STAGE_TOKENS_LIBRARY_SENTENCEPIECE_LIBRARY_H_
#define STAGECOACH_STAGE_TOKENS_LIBRARY_SENTENCEPIECE_LIBRARY_H_

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace stagecoach {

// options: spm_train's flags, without input and model_prefix. next: the following line; false: the
// lines are over. model: the bytes of the file. The library's log goes to standard error.
std::string TrainByLibrary(const std::unordered_map<std::string, std::string>& options,
                           const std::function<bool(std::string*)>& next, std::string* model);

class LibraryTokenizer {
 public:
  explicit LibraryTokenizer(const std::string& model);
  ~LibraryTokenizer();
  bool ok() const;
  int ids() const;
  int unknown() const;
  int begin() const;
  int end() const;
  int pad() const;
  std::string Piece(int id) const;
  float Score(int id) const;
  std::vector<int> Encode(const std::string& text) const;
  std::string Decode(const std::vector<int>& ids) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_LIBRARY_SENTENCEPIECE_LIBRARY_H_
