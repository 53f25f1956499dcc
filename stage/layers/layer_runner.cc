#include "stage/layers/layer_runner.h"

#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "network/passes/padded_output.h"
#include "network/stored.h"
#include "stage/backends/bound_kernel.h"

namespace stagecoach {
absl::StatusOr<std::unique_ptr<LayerRunner>> LayerRunner::Create(const Network& network,
                                                                 const NetworkLayer& layer,
                                                                 Backend& backend, Values* values) {
  CHECK_EQ(layer.lists->parameters.size(), layer.parameters.size())
      << "parameters of " << layer.label;
  CHECK_EQ(layer.lists->states.size(), layer.states.size()) << "states of " << layer.label;
  auto runner = std::unique_ptr<LayerRunner>(new LayerRunner(
      layer.lists, static_cast<uint32_t>(layer.index), ComputeDType(network.precision), backend));
  RETURN_IF_ERROR(runner->AllocateParameters(layer.parameters, values));
  RETURN_IF_ERROR(runner->AllocateStates(layer.states));
  runner->MakeTable();
  if (const auto output = PaddableOutput(network, layer)) runner->padded_ = &runner->At(*output);
  RETURN_IF_ERROR(Annotate(runner->PrepareLists(), layer.label));
  return runner;
}

absl::Status LayerRunner::PrepareLists() {
  ASSIGN_OR_RETURN(forward_, Prepare(lists_->forward));
  ASSIGN_OR_RETURN(forward_alone_, Prepare(lists_->forward_alone));
  ASSIGN_OR_RETURN(evaluation_, Prepare(lists_->evaluation));
  ASSIGN_OR_RETURN(backward_, Prepare(lists_->backward));
  ASSIGN_OR_RETURN(input_gradient_, Prepare(lists_->input_gradient));
  ASSIGN_OR_RETURN(weight_gradient_, Prepare(lists_->weight_gradient));
  ASSIGN_OR_RETURN(commit_, Prepare(lists_->commit));
  return absl::OkStatus();
}

namespace {

// Back ends see by the version when it changes: what they make of it may serve many micro-batches.
absl::StatusOr<Tensor> MakeParameter(Allocator& allocator, DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(allocator, MemoryKind::kParameters, dtype, shape));
  tensor.buffer()->CountVersions();
  return tensor;
}

// Tied ones and a base are in the type that operations read alone.
bool HasMaster(const ParameterSpec& spec) { return IsStored(spec); }

}  // namespace

// A tied one's is shared with the layers of the cell that use the same parameter.
absl::Status LayerRunner::AllocateValue(const ValueType& type, Values* values,
                                        Parameter* parameter) {
  const ParameterSpec& spec = parameter->spec;
  Tensor owned;
  const bool tied = spec.tied();
  CHECK(!tied || values != nullptr) << spec.name << " is tied";
  Tensor& value = tied ? (*values)[spec.tied_to] : owned;
  if (!value.valid()) {
    const DType dtype = HasMaster(spec) ? DType::kF32 : ElementDType(type.element, dtype_);
    ASSIGN_OR_RETURN(value, MakeParameter(backend_.allocator(), dtype, spec.shape));
  }
  parameter->value = parameter->compute = value;
  return absl::OkStatus();
}

absl::Status LayerRunner::AllocateParameters(const std::vector<ParameterSpec>& specs,
                                             Values* values) {
  Allocator& memory = backend_.allocator();
  parameters_.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const ValueType& type = lists_->value(lists_->parameters[i]).type;
    Parameter parameter{.spec = specs[i]};
    RETURN_IF_ERROR(AllocateValue(type, values, &parameter));
    if (lists_->parameter_gradients[i].valid()) {
      ASSIGN_OR_RETURN(parameter.gradient,
                       MakeTensor(memory, MemoryKind::kGradients, DType::kF32, specs[i].shape));
      backend_.Fill(parameter.gradient, 0.0f);
    }
    if (!specs[i].tied()) {
      if (dtype_ != DType::kF32 && HasMaster(specs[i])) {
        ASSIGN_OR_RETURN(parameter.compute, MakeParameter(memory, dtype_, specs[i].shape));
      }
      if (values != nullptr) (*values)[specs[i].name] = ReadByOperations(parameter, type);
    }
    parameters_.push_back(std::move(parameter));
  }
  return absl::OkStatus();
}

// Accumulators are accounted as gradients: both gather over the micro-batches of a step.
absl::Status LayerRunner::AllocateStates(const std::vector<StateSpec>& specs) {
  Allocator& memory = backend_.allocator();
  for (size_t i = 0; i < specs.size(); ++i) {
    const ValueType& type = lists_->value(lists_->states[i]).type;
    ASSIGN_OR_RETURN(Tensor value, MakeTensor(memory, MemoryKind::kParameters,
                                              ElementDType(type.element, dtype_), specs[i].shape));
    states_.push_back({specs[i], std::move(value)});
  }
  for (const ValueId id : lists_->accumulators) {
    const ValueType& type = lists_->value(id).type;
    ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(memory, MemoryKind::kGradients,
                                               ElementDType(type.element, dtype_), type.shape));
    gathered_.emplace_back(tensor.buffer(), DType::kF32,
                           Shape{tensor.bytes() / DTypeSize(DType::kF32)});
    backend_.Fill(gathered_.back(), 0.0f);
    accumulators_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

std::vector<Tensor*> LayerRunner::Places(const std::vector<ValueId>& ids) {
  std::vector<Tensor*> places;
  for (const ValueId id : ids) places.push_back(&At(id));
  return places;
}

absl::StatusOr<LayerRunner::Step> LayerRunner::PrepareStep(const ListedCall& listed) {
  const Call& call = listed.call;
  Step step;
  step.operation = call.operation.c_str();
  for (const ValueId id : call.outputs) step.types.push_back(&lists_->value(id).type);
  ASSIGN_OR_RETURN(step.kernel, PrepareBound(backend_, call, lists_->TypesOf(call), dtype_));
  step.inputs = Operands(Places(call.inputs));
  step.outputs = Operands(Places(call.outputs));
  step.adds = Operands(Places(call.adds));
  step.dropped = Places(listed.dropped);
  if (listed.in_place.has_value()) {
    step.in_place = &step.inputs[static_cast<size_t>(*listed.in_place)];
  }
  return step;
}

absl::StatusOr<LayerRunner::Program> LayerRunner::Prepare(const CallList& list) {
  Program program;
  for (const ListedCall& listed : list.calls) {
    ASSIGN_OR_RETURN(Step step, PrepareStep(listed));
    program.steps.push_back(std::move(step));
  }
  program.unused = Places(list.unused);
  return program;
}

void LayerRunner::Place(const std::vector<ValueId>& ids, Tensors tuple,
                        const ForwardContext& context) {
  size_t next = 0;
  for (const ValueId id : ids) {
    if (!id.valid()) continue;
    CHECK_LT(next, tuple.size()) << "tensors into layer " << index_;
    const ValueType& type = lists_->value(id).type;
    CHECK_EQ(tuple[next].elements(), TypeElements(type, context.binding()))
        << "elements of " << FormatType(type) << " into layer " << index_ << ", micro-batch "
        << context.micro_batch.value;
    At(id) = std::move(tuple[next++]);
  }
  CHECK_EQ(next, tuple.size()) << "tensors into layer " << index_;
}

Tensors LayerRunner::Collect(const std::vector<ValueId>& ids) {
  Tensors tuple;  // of copies: a value may stand in two tuples
  for (const ValueId id : ids) {
    if (id.valid()) tuple.push_back(At(id));
  }
  return tuple;
}

void LayerRunner::MakeTable() {
  table_.resize(lists_->values.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ValueType& type = lists_->value(lists_->parameters[i]).type;
    At(lists_->parameters[i]) = ReadByOperations(parameters_[i], type);
    const ValueId gradient = lists_->parameter_gradients[i];
    if (gradient.valid()) At(gradient) = parameters_[i].gradient;
  }
  for (size_t i = 0; i < states_.size(); ++i) At(lists_->states[i]) = states_[i].value;
  for (size_t i = 0; i < accumulators_.size(); ++i) {
    At(lists_->accumulators[i]) = accumulators_[i];
  }
  for (Tensor& tensor : table_) {
    if (!tensor.valid()) passing_.push_back(&tensor);
  }
}

void LayerRunner::Clear() {
  for (Tensor* tensor : passing_) {
    if (tensor->valid()) tensor->Reset();
  }
}

absl::Status LayerRunner::MakeOutputs(const Step& step, const ForwardContext& context) {
  for (size_t i = 0; i < step.types.size(); ++i) {
    Tensor& output = step.outputs.place(i);
    const ValueType& type = *step.types[i];
    if (output.valid()) continue;  // the caller said where
    if (i == 0 && step.in_place != nullptr) {
      output = step.in_place->Reshaped(RuntimeShape(type, context.binding()));
      continue;
    }
    const Shape shape = RuntimeShape(type, context.binding());
    const DType dtype = ElementDType(type.element, dtype_);
    // Who looks at an evaluation's answers wants them dense.
    if (&output == padded_ && context.training) {
      ASSIGN_OR_RETURN(
          output, MakePaddedTensor(backend_.allocator(), MemoryKind::kActivations, dtype, shape,
                                   backend_.LogitsStride(shape.back(), dtype)));
      continue;
    }
    ASSIGN_OR_RETURN(output,
                     MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype, shape));
  }
  return absl::OkStatus();
}

absl::Status LayerRunner::RunSteps(const Program& program, const ForwardContext& context) {
  const KernelContext where = {context, index_};
  for (Tensor* unused : program.unused) unused->Reset();
  for (const Step& step : program.steps) {
    NoteOperation(step.operation);
    RETURN_IF_ERROR(MakeOutputs(step, context));
    step.kernel(where, {step.inputs, step.outputs, step.adds});
    for (Tensor* dropped : step.dropped) dropped->Reset();
  }
  NoteOperation(nullptr);
  return absl::OkStatus();
}

absl::StatusOr<Tensors> LayerRunner::Run(const Program& program, const ForwardContext& context,
                                         const std::vector<ValueId>& results,
                                         const std::vector<ValueId>& kept, Tensors* stash) {
  const absl::Status status = RunSteps(program, context);
  Tensors tuple;
  if (status.ok()) tuple = Collect(results);
  if (status.ok() && stash != nullptr) *stash = Collect(kept);
  Clear();
  if (!status.ok()) return status;
  return tuple;
}

absl::StatusOr<Tensors> LayerRunner::Forward(Tensors inputs, const ForwardContext& context,
                                             Stash* stash) {
  Place(lists_->inputs, std::move(inputs), context);
  if (!context.training) {
    return Run(evaluation_, context, lists_->evaluation_outputs, {}, nullptr);
  }
  if (stash == nullptr) return Run(forward_alone_, context, lists_->outputs, {}, nullptr);
  stash->context = context;
  return Run(forward_, context, lists_->outputs, lists_->stash, &stash->tensors);
}

absl::StatusOr<Tensors> LayerRunner::BackwardInput(Tensors output_gradients, Stash* stash) {
  Place(lists_->stash, std::move(stash->tensors), stash->context);
  Place(lists_->output_gradients, std::move(output_gradients), stash->context);
  return Run(input_gradient_, stash->context, lists_->input_gradients, lists_->weight_stash,
             &stash->tensors);
}

absl::Status LayerRunner::BackwardWeight(Stash stash) {
  Place(lists_->weight_stash, std::move(stash.tensors), stash.context);
  return Run(weight_gradient_, stash.context, {}, {}, nullptr).status();
}

absl::StatusOr<Tensors> LayerRunner::Backward(Tensors output_gradients, Stash stash, Tensors into) {
  Place(lists_->stash, std::move(stash.tensors), stash.context);
  Place(lists_->output_gradients, std::move(output_gradients), stash.context);
  if (!into.empty()) Place(lists_->input_gradients, std::move(into), stash.context);
  return Run(backward_, stash.context, lists_->input_gradients, {}, nullptr);
}

void LayerRunner::AddTo(Values* values) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& spec = parameters_[i].spec;
    const ValueType& type = lists_->value(lists_->parameters[i]).type;
    (*values)[spec.tied() ? spec.tied_to : spec.name] = ReadByOperations(parameters_[i], type);
  }
  for (const LayerState& state : states_) (*values)[state.spec.name] = state.value;
}

absl::Status LayerRunner::CommitStates() {
  return Run(commit_, ForwardContext(), {}, {}, nullptr).status();
}

}  // namespace stagecoach
