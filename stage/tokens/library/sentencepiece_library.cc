#include "stage/tokens/library/sentencepiece_library.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace stagecoach {
namespace {

class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::function<bool(std::string*)>& next) : next_(next) { Next(); }
  bool done() const override { return done_; }
  void Next() override { done_ = !next_(&line_); }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::function<bool(std::string*)>& next_;
  std::string line_;
  bool done_ = false;
};

}  // namespace

std::string TrainByLibrary(const std::unordered_map<std::string, std::string>& options,
                           const std::function<bool(std::string*)>& next, std::string* model) {
  Lines lines(next);
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, model);
  return status.ok() ? "" : status.ToString();
}

struct LibraryTokenizer::State {
  sentencepiece::SentencePieceProcessor processor;
  bool ok = false;
};

LibraryTokenizer::LibraryTokenizer(const std::string& model) : state_(new State) {
  state_->ok = state_->processor.LoadFromSerializedProto(model).ok();
}
LibraryTokenizer::~LibraryTokenizer() = default;

bool LibraryTokenizer::ok() const { return state_->ok; }
int LibraryTokenizer::ids() const { return state_->processor.GetPieceSize(); }
int LibraryTokenizer::unknown() const { return state_->processor.unk_id(); }
int LibraryTokenizer::begin() const { return state_->processor.bos_id(); }
int LibraryTokenizer::end() const { return state_->processor.eos_id(); }
int LibraryTokenizer::pad() const { return state_->processor.pad_id(); }
std::string LibraryTokenizer::Piece(int id) const { return state_->processor.IdToPiece(id); }
float LibraryTokenizer::Score(int id) const { return state_->processor.GetScore(id); }

std::vector<int> LibraryTokenizer::Encode(const std::string& text) const {
  std::vector<int> ids;
  state_->processor.Encode(text, &ids).IgnoreError();
  return ids;
}

std::string LibraryTokenizer::Decode(const std::vector<int>& ids) const {
  std::string text;
  state_->processor.Decode(ids, &text).IgnoreError();
  return text;
}

}  // namespace stagecoach
