#include "stage/data/open_source.h"

#include "base/errors/status.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

// Each has a file in stage/data/sources, which defines TextDataSource and so on. Data and network
// fit (ValidateData).
using SourceOpener = absl::StatusOr<std::unique_ptr<BatchSource>>(const JobSpec&, const Network&,
                                                                  std::span<const std::string>,
                                                                  const DataRoots&, SourceLook);
STAGECOACH_LISTED(SourceOpener, DataSource, STAGECOACH_DATA)

// stage/data/sources/line_source.cc: the lines of a job with `write`, whatever its data.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenLines(const JobSpec& spec, const Network& network,
                                                       const DataRoots& roots);

absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const JobSpec& spec, const Network& network,
                                                        std::span<const std::string> reads,
                                                        const DataRoots& roots, SourceLook look) {
  RETURN_IF_ERROR(ValidateData(spec.data, network));
  if (spec.write.has_value()) return OpenLines(spec, network, roots);
  return PartOf(DataKinds().Named(spec.data.kind), kListedDataKind, kListedDataSource)(
      spec, network, reads, roots, look);
}

}  // namespace stagecoach
