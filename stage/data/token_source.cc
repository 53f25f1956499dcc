#include "stage/data/token_source.h"

#include <span>
#include <string>

#include "base/errors/check.h"

namespace stagecoach {

HostBatch TokenSource::Named(const TokenBatch& tokens, std::span<const std::string> names) {
  HostBatch batch{.samples = tokens.sequences, .arrays = {}};
  if (batch.samples == 0) return batch;
  for (const std::string& name : names) {
    CHECK(name == "tokens" || name == "targets") << "a text has no input \"" << name << "\"";
    const auto bytes = std::as_bytes(std::span(name == "tokens" ? tokens.inputs : tokens.targets));
    batch.arrays.emplace_back(bytes.begin(), bytes.end());
  }
  return batch;
}

}  // namespace stagecoach
