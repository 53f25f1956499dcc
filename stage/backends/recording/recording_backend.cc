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

Fields FieldsOf(const SgdArgs& args) {
  const auto& [value, gradient, velocity, gradient_scale, learning_rate, momentum, weight_decay,
               nesterov, compute] = args;
  Fields fields = {{"value", value},
                   {"gradient", gradient},
                   {"velocity", velocity},
                   {"gradient_scale", gradient_scale},
                   {"learning_rate", learning_rate},
                   {"momentum", momentum},
                   {"weight_decay", weight_decay}};
  if (nesterov) fields.push_back({"nesterov", int64_t{1}});
  fields.push_back({"compute", compute});
  return fields;
}

Fields FieldsOf(const AdamWArgs& args) {
  const auto& [value, gradient, m, v, gradient_scale, learning_rate, beta1, beta2, epsilon,
               weight_decay, correction1, correction2, compute] = args;
  return {{"value", value},
          {"gradient", gradient},
          {"m", m},
          {"v", v},
          {"gradient_scale", gradient_scale},
          {"learning_rate", learning_rate},
          {"beta1", beta1},
          {"beta2", beta2},
          {"epsilon", epsilon},
          {"weight_decay", weight_decay},
          {"correction1", correction1},
          {"correction2", correction2},
          {"compute", compute}};
}

Fields FieldsOf(const RmsPropArgs& args) {
  const auto& [value, gradient, square, velocity, gradient_scale, inner_rate, outer_rate, decay,
               momentum, inside, outside, weight_decay, compute] = args;
  return {{"value", value},
          {"gradient", gradient},
          {"square", square},
          {"velocity", velocity},
          {"gradient_scale", gradient_scale},
          {"inner_rate", inner_rate},
          {"outer_rate", outer_rate},
          {"decay", decay},
          {"momentum", momentum},
          {"inside", inside},
          {"outside", outside},
          {"weight_decay", weight_decay},
          {"compute", compute}};
}

Fields FieldsOf(const LambArgs& args) {
  const auto& [value, m, v, gradient, norms, gradient_scale, learning_rate, beta1, beta2, epsilon,
               weight_decay, correction1, correction2, adapt, compute] = args;
  return {{"value", value},
          {"m", m},
          {"v", v},
          {"gradient", gradient},
          {"norms", norms},
          {"gradient_scale", gradient_scale},
          {"learning_rate", learning_rate},
          {"beta1", beta1},
          {"beta2", beta2},
          {"epsilon", epsilon},
          {"weight_decay", weight_decay},
          {"correction1", correction1},
          {"correction2", correction2},
          {"adapt", int64_t{adapt}},
          {"compute", compute}};
}

Fields FieldsOf(const AverageArgs& args) {
  const auto& [value, average, rate] = args;
  return {{"value", value}, {"average", average}, {"rate", rate}};
}

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

void RecordingBackend::Sgd(const SgdArgs& args) {
  log_->Call("Sgd", FieldsOf(args));
  inner_->Sgd(args);
}

void RecordingBackend::AdamW(const AdamWArgs& args) {
  log_->Call("AdamW", FieldsOf(args));
  inner_->AdamW(args);
}

void RecordingBackend::RmsProp(const RmsPropArgs& args) {
  log_->Call("RmsProp", FieldsOf(args));
  inner_->RmsProp(args);
}

void RecordingBackend::Lamb(const LambArgs& args) {
  log_->Call("Lamb", FieldsOf(args));
  inner_->Lamb(args);
}

void RecordingBackend::Average(const AverageArgs& args) {
  log_->Call("Average", FieldsOf(args));
  inner_->Average(args);
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

void RecordingBackend::SgdAll(std::span<const SgdArgs> all) {
  WriteAll(*log_, "SgdAll", all);
  inner_->SgdAll(all);
}

void RecordingBackend::AdamWAll(std::span<const AdamWArgs> all) {
  WriteAll(*log_, "AdamWAll", all);
  inner_->AdamWAll(all);
}

void RecordingBackend::RmsPropAll(std::span<const RmsPropArgs> all) {
  WriteAll(*log_, "RmsPropAll", all);
  inner_->RmsPropAll(all);
}

void RecordingBackend::LambAll(std::span<const LambArgs> all) {
  WriteAll(*log_, "LambAll", all);
  inner_->LambAll(all);
}

void RecordingBackend::AverageAll(std::span<const AverageArgs> all) {
  WriteAll(*log_, "AverageAll", all);
  inner_->AverageAll(all);
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
