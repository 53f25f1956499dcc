#include "services/cli/spec/data_check.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <variant>

#include "base/status.h"
#include "plan/text_check.h"
#include "plan/text_split.h"

namespace stagecoach {

namespace {

// Tokens of a sequence; none where the network reads no text, which is told when the job is validated.
const int64_t* ContextOf(const ModelSpec& model) {
  const AttributeValue* context = model.attributes.Find("context");
  return context == nullptr ? nullptr : std::get_if<int64_t>(context);
}

}  // namespace

absl::Status CheckData(const JobSpec& spec) {
  const std::string& path = spec.data.text.path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return absl::OkStatus();  // a pipe would block
  std::ifstream file(path, std::ios::binary);
  std::string head(kTextCheckBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (file.bad()) return absl::OkStatus();
  head.resize(static_cast<size_t>(file.gcount()));
  RETURN_IF_ERROR(CheckIsText(spec.data.text, head));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  const int64_t* context = ContextOf(spec.model);
  if (error || context == nullptr || *context == 0) return absl::OkStatus();
  return CheckTextLength(spec, *context, bytes);
}

}  // namespace stagecoach
