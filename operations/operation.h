// Operation: a building block of networks. One object an operation, without state. It defines
// operands and outputs of a call, its cost, and its gradient. Kernels live with the back ends.
// Ownership: the catalogue owns all operations for the life of the process.
// Threads:   any.
// Units and shapes: FLOPs of a micro-batch, a multiply-add is two.
// Errors:    CheckAttributes and Types answer INVALID_ARGUMENT with the fault and the requirement.
//            All other functions may only be called for calls that passed both.
#ifndef STAGECOACH_OPERATIONS_OPERATION_H_
#define STAGECOACH_OPERATIONS_OPERATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "operations/attributes.h"
#include "operations/call_case.h"
#include "operations/value_type.h"

namespace stagecoach {

// One use of an operation. `adds`: buffers that the call adds to or changes. It adds to gradients
// of parameters, which are summed over micro-batches. It changes accumulators and states. These
// buffers are neither inputs nor outputs.
struct Call {
  std::string operation;
  Attributes attributes;
  std::vector<ValueId> inputs, outputs, adds;
  friend bool operator==(const Call&, const Call&) = default;
};

struct CallTypes {
  std::vector<ValueType> inputs, outputs, adds;
};

struct Cost {
  int64_t products = 0;  // FLOPs of the model's matrix products, for MFU
  int64_t flops = 0;     // all; element-wise passes by nominal numbers
};

// GradientWriter: a call of the forward as the operation's gradient rule sees it. The rule writes
// to it.
class GradientWriter {
 public:
  virtual ~GradientWriter() = default;
  virtual int inputs() const = 0;
  virtual ValueId input(int i) const = 0;
  virtual const ValueType& input_type(int i) const = 0;
  virtual ValueId output(int i) const = 0;
  // Whether the gradient of this input is wanted.
  virtual bool Wants(int input) const = 0;
  // The whole gradient of an output; invalid: nothing depends on that output.
  virtual ValueId OutputGradient(int i) const = 0;
  // Adds a call to the backward and returns its outputs.
  virtual std::vector<ValueId> Emit(std::string_view operation, Attributes attributes,
                                    std::vector<ValueId> inputs) = 0;
  // Adds a call that adds to the gradients of these inputs, which are parameters.
  virtual void EmitAdding(std::string_view operation, Attributes attributes,
                          std::vector<ValueId> inputs, const std::vector<int>& parameters) = 0;
  // Adds a share of the gradient of an input that is no parameter.
  virtual void Contribute(int input, ValueId gradient) = 0;
  // Refuses a call that needs a gradient and has none. Later calls of the writer have no effect.
  virtual void Refuse(std::string_view why) = 0;
};

// UpdateWriter: a call of the forward as the operation's update rule sees it. The rule writes calls
// that change the states among the call's inputs.
class UpdateWriter {
 public:
  virtual ~UpdateWriter() = default;
  virtual const ValueType& input_type(int i) const = 0;
  virtual ValueId output(int i) const = 0;
  // A new buffer that is zero when a step begins.
  virtual ValueId Accumulator(Element element, Shape shape) = 0;
  // Adds a call that folds the results of one micro-batch into accumulators: once for each, in
  // ascending order.
  virtual void EmitFold(std::string_view operation, Attributes attributes,
                        std::vector<ValueId> inputs, const std::vector<ValueId>& accumulators) = 0;
  // Adds a call that changes these inputs, which are states, when the step is applied.
  virtual void EmitCommit(std::string_view operation, Attributes attributes,
                          std::vector<ValueId> accumulators, const std::vector<int>& states) = 0;
};

// The form of a call in an evaluation.
struct EvaluationForm {
  bool identity = false;  // its output is its first input
  Attributes attributes;
  // Another operation of the same inputs that gives only output 0; empty: the same one.
  std::string operation = {};
};

// The two calls of a joint operation (operations/joint.h). The first has all its inputs and outputs
// and its attributes. The second has no attributes. It reads the inputs `weight_inputs` and adds to
// gradients.
struct JointParts {
  std::string_view input_gradient, weight_gradient;
  std::vector<int> weight_inputs;
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string_view name() const = 0;
  // Raised if the meaning of a call changes. Coordinator and stages must agree.
  virtual int version() const { return 1; }
  virtual absl::Status CheckAttributes(const Attributes& attributes) const = 0;
  // Types of the outputs. `adds`: types of the buffers that the call adds to.
  virtual absl::StatusOr<std::vector<ValueType>> Types(const Attributes& attributes,
                                                       std::span<const ValueType> inputs,
                                                       std::span<const ValueType> adds) const = 0;
  virtual Cost CostOf(const Attributes& attributes, const CallTypes& types,
                      int64_t samples) const = 0;
  // Writes the calls that compute the gradients of the wanted inputs. Operations of the backward
  // refuse.
  virtual void Gradient(const Attributes& attributes, GradientWriter& writer) const;
  // Writes the calls that change states, if the call has any.
  virtual void Update(const Attributes&, UpdateWriter&) const {}
  virtual EvaluationForm Evaluation(const Attributes& attributes) const {
    return {.identity = false, .attributes = attributes};
  }
  // Fewest samples that a micro-batch must have in training.
  virtual int64_t LeastSamples(const Attributes&, const CallTypes&) const { return 1; }
  // Rows of the table in which ids are looked up, if any: ids must be below.
  virtual std::optional<int64_t> RowsOfTable(const Attributes&, const CallTypes&) const {
    return std::nullopt;
  }
  // Random numbers that a call draws from its stream for one sample.
  virtual int64_t Drawn(const Attributes&, const CallTypes&) const { return 0; }
  // Attributes for the same call with one more input at the end, which is added to output 0 before
  // its one rounding. nullopt: there is no such form.
  virtual std::optional<Attributes> WithSum(const Attributes&) const { return std::nullopt; }
  // Parts of a joint operation; null: it is a single one.
  virtual const JointParts* Parts() const { return nullptr; }
  // Inputs whose memory output 0 may take, if no call reads them afterwards; the best first.
  virtual std::vector<int> MayOverwrite(const Attributes&) const { return {}; }
  // The names of the sums that a loss gives, in their order (operations/losses/loss_types.h):
  // "loss", "terms", then measures. Measures are sums over the terms as well. Counts class by class
  // come behind them, without names. No other operation has sums.
  virtual std::vector<std::string> Sums(const Attributes&) const { return {}; }
  // Cases for its tests. Operations of the backward are tested with those whose gradient they are.
  // Their own cases are calls that no gradient rule writes.
  virtual std::vector<CallCase> Cases() const { return {}; }
};

// An operation with a struct of attributes: the same functions, with the struct.
template <typename Struct>
class OperationOf : public Operation {
 public:
  absl::Status CheckAttributes(const Attributes& attributes) const final {
    return FromAttributes<Struct>(attributes).status();
  }
  absl::StatusOr<std::vector<ValueType>> Types(const Attributes& attributes,
                                               std::span<const ValueType> inputs,
                                               std::span<const ValueType> adds) const final {
    const absl::StatusOr<Struct> values = FromAttributes<Struct>(attributes);
    if (!values.ok()) return values.status();
    return TypesOf(*values, inputs, adds);
  }
  Cost CostOf(const Attributes& attributes, const CallTypes& types, int64_t samples) const final {
    return CostOfCall(Get(attributes), types, samples);
  }
  void Gradient(const Attributes& attributes, GradientWriter& writer) const final {
    WriteGradient(Get(attributes), writer);
  }

 protected:
  static Struct Get(const Attributes& attributes) {
    absl::StatusOr<Struct> values = FromAttributes<Struct>(attributes);
    CHECK_OK(values.status());
    return *values;
  }

 private:
  virtual absl::StatusOr<std::vector<ValueType>> TypesOf(const Struct& attributes,
                                                         std::span<const ValueType> inputs,
                                                         std::span<const ValueType> adds) const = 0;
  virtual Cost CostOfCall(const Struct& attributes, const CallTypes& types,
                          int64_t samples) const = 0;
  virtual void WriteGradient(const Struct&, GradientWriter& writer) const {
    writer.Refuse("has no gradient");
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_OPERATION_H_
