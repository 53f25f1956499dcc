#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "stage/tokens/tokenizer.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {

int OracleTokens(const char* path) {
  const auto tokenizer = Tokenizer::Load(*PosixFileSystem(), path);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << "\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json ask = nlohmann::json::parse(line);
    nlohmann::json answer;
    std::vector<int32_t> ids;
    if (ask.contains("text")) {
      const auto encoded = (*tokenizer)->Encode(ask["text"].get<std::string>());
      CHECK_OK(encoded.status());
      answer["ids"] = ids = *encoded;
    } else {
      ids = ask["ids"].get<std::vector<int32_t>>();
    }
    const auto decoded = (*tokenizer)->Decode(ids);
    CHECK_OK(decoded.status());
    answer["text"] = *decoded;
    std::cout << answer.dump() << "\n";
  }
  return 0;
}

}  // namespace stagecoach
