// MatmulTable: the matrix library's algorithm for each product, by shape, as timed once on one kind
// of card. Another algorithm adds in another order. So the table is a part of the back end's
// fingerprint: stages that use the same one compute the same bits.
// Ownership: plain value.
// Threads:   thread-compatible.
// Units and shapes: the shapes are MatmulShape's; bytes.
// Errors:    Parse: INVALID_ARGUMENT naming field, value and remedy. CheckFits: FAILED_PRECONDITION
//            naming the table's card and library, and those here.
//
// The text is JSON with one product a line, sorted by shape:
//   {"matmul_table": 1, "card": "NVIDIA H100 80GB HBM3", "compute_capability": 90,
//    "cublaslt": 130100, "workspace_bytes": 33554432, "products": [
//   {"kind": "forward", "rows": 8192, ..., "fused": "bias", "algorithm": 66, "tile": 20, ...}
//   ]}
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/cuda/matmul/matmul_plans.h"

namespace stagecoach::cuda {

// The library's offers depend on these besides the shape. A table fits if all of them are equal.
struct MatmulTableHeader {
  std::string card;             // as the driver names it
  int compute_capability = 0;   // 90 means 9.0
  int64_t library_version = 0;  // cublasLtGetVersion
  int64_t workspace_bytes = 0;

  friend bool operator==(const MatmulTableHeader&, const MatmulTableHeader&) = default;
};

struct MatmulChoice {
  MatmulEpilogue fused = MatmulEpilogue::kNone;  // one of EpiloguesToTry
  MatmulAlgorithm algorithm;

  friend bool operator==(const MatmulChoice&, const MatmulChoice&) = default;
};

class MatmulTable {
 public:
  explicit MatmulTable(MatmulTableHeader header) : header_(std::move(header)) {}
  static absl::StatusOr<MatmulTable> Parse(const std::string& text);

  const MatmulTableHeader& header() const { return header_; }
  size_t size() const { return choices_.size(); }
  // False, and no change, if the shape has a choice already.
  bool Add(const MatmulShape& shape, const MatmulChoice& choice);
  // Null: the table has none for the shape.
  const MatmulChoice* Find(const MatmulShape& shape) const;

  // Equal tables have equal texts.
  std::string Format() const;
  // SHA-256 of Format(), 64 digits. So the file's layout does not matter.
  std::string Digest() const;
  absl::Status CheckFits(const MatmulTableHeader& here) const;

  friend bool operator==(const MatmulTable&, const MatmulTable&) = default;

 private:
  MatmulTableHeader header_;
  std::map<MatmulShape, MatmulChoice> choices_;
};

// "forward of 8192 x 1600 by 4800, bfloat16, bias and a residual": rows, in, out.
std::string ShapeText(const MatmulShape& shape);

// The remedy for error texts: how to make a new table.
inline constexpr char kMakeMatmulTable[] =
    "make one on this card: gpu-operations --matmul-table-out=FILE";

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MATMUL_MATMUL_TABLE_H_
