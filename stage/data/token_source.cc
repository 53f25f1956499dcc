#include "stage/data/token_source.h"

#include <span>
#include <string>

#include "base/errors/check.h"
#include "plan/data/token_inputs.h"

namespace stagecoach {

HostBatch TokenSource::Named(const TokenBatch& tokens, std::span<const std::string> names) {
  HostBatch batch{.samples = tokens.sequences, .arrays = {}};
  if (batch.samples == 0) return batch;
  for (const std::string& name : names) {
    if (name == kSegments) {
      batch.arrays.emplace_back(tokens.inputs.size() * sizeof(int32_t));
      continue;
    }
    const bool starts = name == kDocumentStarts && !tokens.document_starts.empty();
    CHECK(name == "tokens" || name == "targets" || starts)
        << "a text has no input \"" << name << "\"";
    const std::vector<int32_t>& ids = starts             ? tokens.document_starts
                                      : name == "tokens" ? tokens.inputs
                                                         : tokens.targets;
    const auto bytes = std::as_bytes(std::span(ids));
    batch.arrays.emplace_back(bytes.begin(), bytes.end());
  }
  return batch;
}

}  // namespace stagecoach
