// Recorder: named arrays on their way into one safetensors file, for compare.py to read.
// Errors: of the file system, with the path.
#ifndef STAGECOACH_TESTS_ORACLE_RECORDER_H_
#define STAGECOACH_TESTS_ORACLE_RECORDER_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/numbers/dtype.h"
#include "base/numbers/shape.h"
#include "checkpoint/safetensors/safetensors.h"
#include "stage/backends/backend.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class Recorder {
 public:
  // Copies the values as they are now.
  void Add(const std::string& name, Backend& backend, const Tensor& tensor);
  void Add(const std::string& name, const std::vector<int32_t>& values, Shape shape);
  void Add(const std::string& name, const std::vector<double>& values);
  void Add(const std::string& name, DType dtype, Shape shape, std::vector<std::byte> bytes);
  void Note(const std::string& key, const std::string& value) { metadata_[key] = value; }

  absl::Status Write(const std::string& path) const;

 private:
  struct Array {
    DType dtype = DType::kF32;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  void Insert(const std::string& name, Array array);

  std::map<std::string, Array> arrays_;  // by name, the order of the file
  Metadata metadata_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_ORACLE_RECORDER_H_
