#include "stage/link/link.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

int64_t PayloadBytes(const TensorMessage& message) {
  int64_t bytes = 0;
  for (const Tensor& tensor : message.tensors) bytes += tensor.bytes();
  return bytes;
}

std::string BoundaryId::ToString() const {
  return absl::StrCat("job ", job, " term ", term, " generation ", generation, " cells ",
                      above.value, " -> ", above.value + 1);
}

}  // namespace stagecoach
