// CallForm: the part of a call's operands that repeats. It is the same for all runs with the same
// types, shapes and strides of tensors and the same number of sequences. From it and addresses the
// operands can be made again, to run the call later.
// Ownership: keeps no memory, and neither do the operands that it makes. All work of a card is in
//            one order. So a later user of released memory runs after the call.
// Threads:   thread-compatible.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_FORM_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_FORM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stage/backends/kernel.h"

namespace stagecoach {

class CallForm {
 public:
  // Sets `words`, which are equal if and only if the forms are, and the operands' addresses.
  static void Describe(const ForwardContext& context, const KernelArguments& arguments,
                       std::vector<uint64_t>* words, std::vector<uint64_t>* addresses);

  CallForm(std::vector<uint64_t> words, const KernelArguments& arguments);

  const std::vector<uint64_t>& words() const { return words_; }
  size_t operands() const { return places_.size(); }
  void Run(const Kernel& kernel, const KernelContext& context,
           std::span<const uint64_t> addresses) const;

 private:
  struct Place {
    bool valid = false;
    DType dtype = DType::kF32;
    Shape shape;
    int64_t row_stride = 0;  // 0: dense
  };

  const std::vector<uint64_t> words_;
  size_t inputs_, outputs_;    // their numbers of places; the rest is for `adds`
  std::vector<Place> places_;  // in the order of the arguments
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_CALL_FORM_H_
