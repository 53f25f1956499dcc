// A tokenizer.json: what is taken encodes any text and decodes any of its ids. The first byte says
// how many bytes at the end are a text to encode.
#include <algorithm>
#include <vector>

#include "stage/tokens/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {

void FuzzTokenizerJson(FuzzInput input) {
  const size_t count = input.Byte();
  std::string bytes = input.Rest();
  const size_t cut = bytes.size() - std::min(bytes.size(), count);
  const std::string text = bytes.substr(cut);
  bytes.resize(cut);
  if (!IsTokenizerJson(bytes)) return;
  const auto tokenizer = Tokenizer::Parse(bytes);
  if (!tokenizer.ok()) return CheckShown(tokenizer.status());
  std::vector<int32_t> all;
  for (int32_t id = 0; id < std::min<int32_t>((*tokenizer)->ids(), 2000); ++id) all.push_back(id);
  CHECK_OK((*tokenizer)->Decode(all).status());
  const auto ids = (*tokenizer)->Encode(text);
  if (!ids.ok()) return CheckShown(ids.status());
  for (const int32_t id : *ids) CHECK(id >= 0 && id < (*tokenizer)->ids()) << id;
  CHECK_OK((*tokenizer)->Decode(*ids).status());
}

}  // namespace stagecoach

FUZZ_TARGET(tokenizer_json, FuzzTokenizerJson)
