// The reader of data.token_file (plan/data/token_file.h).
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/data/token_file.h"
#include "plan/data/token_inputs.h"
#include "stage/data/formats/token_file.h"
#include "stage/data/open_source.h"
#include "stage/data/sequence_source.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<BatchSource>> TokenFileDataSource(const JobSpec& spec,
                                                                 const Network& network,
                                                                 std::span<const std::string>,
                                                                 const DataRoots& roots,
                                                                 SourceLook look) {
  const auto data = spec.data.As<TokenFileData>();
  const auto open = [&](const std::string& field, const std::string& path) {
    return OpenTokenFile(
        roots, {.field = field,
                .path = path,
                .vocabulary = VocabularyOf(network),
                .vocabulary_field = absl::StrCat("model.", spec.network.kind, ".vocabulary"),
                .end = data.end,
                .most_bytes = look == SourceLook::kSurvey ? kMostSurveyedBytes : 0});
  };
  TokenFiles files{.prefix = "data.token_file", .digest_facts = "token_file\n"};
  if (data.packed) files.document_end = static_cast<int32_t>(data.end);
  ASSIGN_OR_RETURN(files.train, OpenEach(files.prefix + ".files", data.files, open));
  ASSIGN_OR_RETURN(files.test, OpenEach(files.prefix + ".test", data.test, open));
  return SourceOfFiles(spec, network, std::move(files));
}

}  // namespace stagecoach
