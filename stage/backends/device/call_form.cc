#include "stage/backends/device/call_form.h"

#include <utility>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

template <typename See>
void EachOperand(const KernelArguments& arguments, See see) {
  for (const Operands* some : {&arguments.inputs, &arguments.outputs, &arguments.adds}) {
    for (size_t i = 0; i < some->size(); ++i) see((*some)[i]);
  }
}

int64_t StrideOf(const Tensor& tensor) { return tensor.padded() ? tensor.row_stride() : 0; }

}  // namespace

void CallForm::Describe(const ForwardContext& context, const KernelArguments& arguments,
                        std::vector<uint64_t>* words, std::vector<uint64_t>* addresses) {
  words->clear();
  addresses->clear();
  words->push_back(static_cast<uint64_t>(context.sequences));
  words->push_back(context.training ? 1 : 0);
  words->push_back(arguments.inputs.size());
  words->push_back(arguments.outputs.size());
  EachOperand(arguments, [&](const Tensor& tensor) {
    // The rank is one more than that of a tensor, so that one that is empty has a word of its own.
    words->push_back(tensor.valid() ? static_cast<uint64_t>(tensor.shape().rank()) + 1 : 0);
    addresses->push_back(
        tensor.valid() ? static_cast<uint64_t>(reinterpret_cast<uintptr_t>(tensor.rows_raw())) : 0);
    if (!tensor.valid()) return;
    words->push_back(static_cast<uint64_t>(tensor.dtype()));
    words->push_back(static_cast<uint64_t>(StrideOf(tensor)));
    for (const int64_t extent : tensor.shape().extents()) {
      words->push_back(static_cast<uint64_t>(extent));
    }
  });
}

CallForm::CallForm(std::vector<uint64_t> words, const KernelArguments& arguments)
    : words_(std::move(words)),
      inputs_(arguments.inputs.size()),
      outputs_(arguments.outputs.size()) {
  EachOperand(arguments, [&](const Tensor& tensor) {
    Place place;
    if (tensor.valid()) place = {true, tensor.dtype(), tensor.shape(), StrideOf(tensor)};
    places_.push_back(std::move(place));
  });
}

void CallForm::Run(const Kernel& kernel, const KernelContext& context,
                   std::span<const uint64_t> addresses) const {
  CHECK_EQ(addresses.size(), places_.size()) << "operands";
  Tensors inputs, outputs, adds;
  for (size_t i = 0; i < places_.size(); ++i) {
    Tensors& group = i < inputs_ ? inputs : i < inputs_ + outputs_ ? outputs : adds;
    const Place& place = places_[i];
    auto* const data = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(addresses[i]));
    group.push_back(place.valid ? UnownedTensor(data, place.dtype, place.shape, place.row_stride)
                                : Tensor());
  }
  kernel(context, {PlacesOf(inputs), PlacesOf(outputs), PlacesOf(adds)});
}

}  // namespace stagecoach
