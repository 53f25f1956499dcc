// The reference back end as it is handed out: an operation whose activations are BF16 runs on
// widened copies in float32, and its outputs are rounded when it has run. Float32 tensors are
// passed on as they are. The copies are none of the stage's memory: they come from an allocator of
// their own, so that what a stage is accounted is what a fast back end would take.
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {
namespace {

// The tensors of one call that have the type of its activations.
class Widening {
 public:
  Widening(ReferenceBackend& backend, Allocator& copies) : backend_(backend), copies_(copies) {}
  Widening(const Widening&) = delete;
  Widening& operator=(const Widening&) = delete;
  ~Widening() {
    for (const auto& [wide, narrow] : outputs_) backend_.Convert(wide, narrow);
  }

  void Reads(Tensor& tensor) {
    const Tensor narrow = Widen(tensor);
    if (narrow.valid()) backend_.Convert(narrow, tensor);
  }
  void Changes(Tensor& tensor) {
    Tensor narrow = Widen(tensor);
    if (!narrow.valid()) return;
    backend_.Convert(narrow, tensor);
    outputs_.emplace_back(tensor, std::move(narrow));
  }
  void Writes(Tensor& tensor) {
    Tensor narrow = Widen(tensor);
    if (narrow.valid()) outputs_.emplace_back(tensor, std::move(narrow));
  }

 private:
  // Puts a float32 tensor of the same shape in the place of a BF16 one, which comes back.
  Tensor Widen(Tensor& tensor) {
    if (!tensor.valid()) return Tensor();
    CHECK(!seen_ || tensor.dtype() == dtype_)
        << DTypeName(tensor.dtype()) << " beside " << DTypeName(dtype_) << " in one operation";
    seen_ = true;
    dtype_ = tensor.dtype();
    if (dtype_ != DType::kBF16) return Tensor();
    auto wide = MakeTensor(copies_, MemoryKind::kWorkspace, DType::kF32, tensor.shape());
    CHECK_OK(wide.status());
    return std::exchange(tensor, *std::move(wide));
  }

  ReferenceBackend& backend_;
  Allocator& copies_;
  bool seen_ = false;
  DType dtype_ = DType::kF32;
  std::vector<std::pair<Tensor, Tensor>> outputs_;  // float32 and where its rounding goes
};

Tensors CopiesOf(const Operands& operands) {
  Tensors tensors;
  for (size_t i = 0; i < operands.size(); ++i) tensors.push_back(operands[i]);
  return tensors;
}

class MixedReferenceBackend final : public ReferenceBackend {
 public:
  using ReferenceBackend::ReferenceBackend;

  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override {
    ASSIGN_OR_RETURN(Kernel kernel, ReferenceBackend::Prepare(call, types, activation));
    if (activation != DType::kBF16) return kernel;
    return [this, kernel, types](const KernelContext& context, const KernelArguments& arguments) {
      Tensors inputs = CopiesOf(arguments.inputs), outputs = CopiesOf(arguments.outputs);
      Tensors adds = CopiesOf(arguments.adds);
      Widening widening(*this, *copies_);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (types.inputs[i].element == Element::kActivation) widening.Reads(inputs[i]);
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (types.outputs[i].element == Element::kActivation) widening.Writes(outputs[i]);
      }
      // An update, which has no outputs, rounds its copies of parameters itself.
      for (size_t i = 0; i < types.adds.size() && !types.outputs.empty(); ++i) {
        if (types.adds[i].element == Element::kActivation) widening.Changes(adds[i]);
      }
      kernel(context, {PlacesOf(inputs), PlacesOf(outputs), PlacesOf(adds)});
    };
  }

  void Fill(const Tensor& tensor, float value) override {
    Tensor wide = tensor;
    Widening widening(*this, *copies_);
    widening.Writes(wide);
    ReferenceBackend::Fill(wide, value);
  }

 private:
  const std::unique_ptr<Allocator> copies_ = MakeHostAllocator(0);
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(const BackendOptions& options) {
  return std::make_unique<MixedReferenceBackend>(options);
}

}  // namespace stagecoach
