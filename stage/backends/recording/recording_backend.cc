// Every set of arguments is taken apart by a structured binding, which names all fields or does not
// compile.
#include "stage/backends/recording/recording_backend.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "operations/catalogue.h"

namespace stagecoach {
namespace {

static_assert(!std::is_abstract_v<RecordingBackend>, "an operation is not handed on");

using Field = CallLog::Field;
using Fields = std::vector<Field>;

Fields FieldsOf(const Backend::SwapArgs& args) {
  const auto& [a, b] = args;
  return {{"a", a}, {"b", b}};
}

Fields FieldsOf(const Backend::NormArgs& args) {
  const auto& [tensor, result] = args;
  return {{"tensor", tensor}, {"result", result}};
}

template <typename Args>
void WriteAll(CallLog& log, const char* operation, std::span<const Args> all) {
  log.Call(operation, {});
  for (const Args& args : all) log.Call("", FieldsOf(args), /*indent=*/true);
}

Fields FieldsOf(const KernelArguments& arguments) {
  Fields fields;
  const auto add = [&fields](const char* name, const Operands& operands) {
    for (size_t i = 0; i < operands.size(); ++i) fields.push_back({name, operands[i]});
  };
  add("in", arguments.inputs);
  add("out", arguments.outputs);
  add("adds", arguments.adds);
  return fields;
}

Fields FieldsOf(const UpdateNumbers& numbers) {
  const auto& [applied, learning_rate, gradient_scale] = numbers;
  return {{"applied", static_cast<int64_t>(applied)},
          {"learning_rate", learning_rate},
          {"gradient_scale", gradient_scale}};
}

// Which of the layer's streams a call draws from; nothing if it draws none.
std::optional<int64_t> DrawOf(const Call& call, const CallTypes& types) {
  if (OperationNamed(call.operation).Drawn(call.attributes, types) == 0) return std::nullopt;
  const AttributeValue* const draw = call.attributes.Find("draw");
  return draw == nullptr ? 0 : std::get<int64_t>(*draw);
}

}  // namespace

RecordingBackend::RecordingBackend(std::unique_ptr<Backend> inner, std::shared_ptr<CallLog> log)
    : inner_(std::move(inner)),
      log_(std::move(log)),
      allocator_(inner_->allocator(), log_),
      link_allocator_(inner_->link_allocator(), log_) {}

Allocator& RecordingBackend::link_allocator() {
  // One allocator stays one: by that a stage sees whether boundaries are copied.
  return CopiesForLinks(*inner_) ? link_allocator_ : allocator_;
}

void RecordingBackend::SetPrecision(Precision precision) {
  log_->Call(absl::StrCat("SetPrecision ", PrecisionName(precision)), {});
  inner_->SetPrecision(precision);
}

absl::StatusOr<Kernel> RecordingBackend::Prepare(const Call& call, const CallTypes& types,
                                                 DType activation) {
  ASSIGN_OR_RETURN(Kernel kernel, inner_->Prepare(call, types, activation));
  const std::string attributes = FormatAttributes(call.attributes);
  return [this, kernel, draw = DrawOf(call, types),
          words = absl::StrCat(call.operation, attributes.empty() ? "" : " ", attributes)](
             const KernelContext& context, const KernelArguments& arguments) {
    Fields fields = FieldsOf(arguments);
    if (draw.has_value()) fields.push_back({"stream", context.Stream(*draw)});
    log_->Call(words, fields);
    kernel(context, arguments);
  };
}

absl::StatusOr<KernelOfAll> RecordingBackend::PrepareAll(std::span<const Call> calls,
                                                         std::span<const CallTypes> types,
                                                         DType activation) {
  ASSIGN_OR_RETURN(KernelOfAll kernel, inner_->PrepareAll(calls, types, activation));
  std::vector<std::string> attributes;
  for (const Call& call : calls) attributes.push_back(FormatAttributes(call.attributes));
  return [this, kernel, attributes, operation = calls[0].operation](
             const KernelContext& context, std::span<const KernelArguments> all) {
    log_->Call(operation, FieldsOf(*context.update));
    for (size_t i = 0; i < all.size(); ++i) {
      log_->Call(attributes[i], FieldsOf(all[i]), /*indent=*/true);
    }
    kernel(context, all);
  };
}

void RecordingBackend::Swap(const Tensor& a, const Tensor& b) {
  log_->Call("Swap", {{"a", a}, {"b", b}});
  inner_->Swap(a, b);
}

void RecordingBackend::Fill(const Tensor& tensor, float value) {
  log_->Call("Fill", {{"tensor", tensor}, {"value", value}});
  inner_->Fill(tensor, value);
}

void RecordingBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  log_->Call("SquaredNorm", {{"tensor", tensor}, {"result", result}});
  inner_->SquaredNorm(tensor, result);
}

void RecordingBackend::FillAll(std::span<const Tensor> all, float value) {
  log_->Call("FillAll", {{"value", value}});
  for (const Tensor& tensor : all) log_->Call("", {{"tensor", tensor}}, /*indent=*/true);
  inner_->FillAll(all, value);
}

void RecordingBackend::SwapAll(std::span<const SwapArgs> all) {
  WriteAll(*log_, "SwapAll", all);
  inner_->SwapAll(all);
}

void RecordingBackend::SquaredNorms(std::span<const NormArgs> all) {
  WriteAll(*log_, "SquaredNorms", all);
  inner_->SquaredNorms(all);
}

void RecordingBackend::Convert(const Tensor& source, const Tensor& target) {
  log_->Call("Convert", {{"source", source}, {"target", target}});
  inner_->Convert(source, target);
}

void RecordingBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  log_->Call("CopyFromHost", {{"target", target}});
  inner_->CopyFromHost(source, target);
}

void RecordingBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  log_->Call("CopyToHost", {{"source", source}});
  inner_->CopyToHost(source, target);
}

absl::StatusOr<uint64_t> RecordingBackend::CopyToLink(const Tensor& source, const Tensor& target) {
  log_->Call("CopyToLink", {{"source", source}, {"target", target}});
  return inner_->CopyToLink(source, target);
}

absl::StatusOr<Tensor> RecordingBackend::CopyFromLink(const Tensor& source) {
  log_->Call("CopyFromLink", {{"source", source}});
  ASSIGN_OR_RETURN(const Tensor tensor, inner_->CopyFromLink(source));
  return Tensor(allocator_.Adopt(tensor.buffer(), tensor.bytes(), MemoryKind::kActivations),
                tensor.dtype(), tensor.shape());
}

void RecordingBackend::EndLinkCopies() {
  log_->Call("EndLinkCopies", {});
  inner_->EndLinkCopies();
}

absl::Status RecordingBackend::Synchronize() {
  log_->Call("Synchronize", {});
  return inner_->Synchronize();
}

void RecordingBackend::EndCell() {
  log_->Call("EndCell", {});
  inner_->EndCell();
}

}  // namespace stagecoach
