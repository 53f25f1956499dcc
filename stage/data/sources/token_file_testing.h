// Files of tokens as llm.c and Megatron write them, for tests.
#ifndef STAGECOACH_STAGE_DATA_SOURCES_TOKEN_FILE_TESTING_H_
#define STAGECOACH_STAGE_DATA_SOURCES_TOKEN_FILE_TESTING_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace stagecoach {

template <typename Number>
void AppendStored(int64_t value, std::string* bytes) {
  const auto number = static_cast<Number>(value);
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Token>
std::string LlmCFile(const std::vector<int64_t>& ids) {
  constexpr bool kSmall = std::is_same_v<Token, uint16_t>;
  std::string file;
  for (const int64_t number :
       {kSmall ? 20240520 : 20240801, kSmall ? 1 : 7, static_cast<int>(ids.size())}) {
    AppendStored<int32_t>(number, &file);
  }
  file.resize(1024, '\0');
  for (const int64_t id : ids) AppendStored<Token>(id, &file);
  return file;
}

struct MegatronPair {
  std::string index, tokens;
};
// A sequence for each document. type: 1 uint8, 4 int32, 5 int64, 8 uint16.
inline MegatronPair MegatronFiles(const std::vector<std::vector<int64_t>>& documents, int type) {
  MegatronPair pair;
  pair.index.assign("MMIDIDX\0\0", 9);
  AppendStored<uint64_t>(1, &pair.index);
  AppendStored<uint8_t>(type, &pair.index);
  const auto count = static_cast<int64_t>(documents.size());
  AppendStored<uint64_t>(count, &pair.index);
  AppendStored<uint64_t>(count + 1, &pair.index);
  std::string firsts;
  for (const std::vector<int64_t>& document : documents) {
    AppendStored<int32_t>(static_cast<int64_t>(document.size()), &pair.index);
    AppendStored<int64_t>(static_cast<int64_t>(pair.tokens.size()), &firsts);
    for (const int64_t id : document) {
      if (type == 1) AppendStored<uint8_t>(id, &pair.tokens);
      if (type == 4) AppendStored<int32_t>(id, &pair.tokens);
      if (type == 5) AppendStored<int64_t>(id, &pair.tokens);
      if (type == 8) AppendStored<uint16_t>(id, &pair.tokens);
    }
  }
  pair.index += firsts;
  for (int64_t i = 0; i <= count; ++i) AppendStored<int64_t>(i, &pair.index);
  return pair;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SOURCES_TOKEN_FILE_TESTING_H_
