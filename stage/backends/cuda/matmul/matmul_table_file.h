// Tables of matrix algorithms in files.
// Ownership: none of the file.
// Threads:   any.
// Units and shapes: a table has at most 1 MiB.
// Errors:    with the file's name. Load: INVALID_ARGUMENT for a file that is not there, too large
//            or no table: an operator named it. Save: the system's error; the file is then the old
//            one or the new one.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_FILE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/matmul/matmul_table.h"

namespace stagecoach::cuda {

inline constexpr size_t kMostMatmulTableBytes = size_t{1} << 20;

absl::StatusOr<MatmulTable> LoadMatmulTable(const std::string& path);
// Checks, before a long measurement, whether Save could write there.
absl::Status CheckMatmulTableFile(const std::string& path);
absl::Status SaveMatmulTable(const MatmulTable& table, const std::string& path);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_FILE_H_
