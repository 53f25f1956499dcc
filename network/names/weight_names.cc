#include "network/names/weight_names.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/suggest.h"
#include "network/names/name_tables.h"

namespace stagecoach {
namespace {

// PyTorch's count of a batch norm's mini-batches.
constexpr char kBatchesTracked[] = "*num_batches_tracked";

std::vector<int> OwnAxes(const Shape& shape) {
  std::vector<int> axes(static_cast<size_t>(shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

WeightTable OwnNames(const Network& network) {
  WeightTable table{.ignored = {kBatchesTracked}};
  const auto add = [&table](const std::string& name, const Shape& shape) {
    table.names.push_back({.ours = name, .shape = shape, .parts = {WholeTensor(name, shape)}});
  };
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (HasName(parameter)) add(parameter.name, parameter.shape);
    }
    for (const StateSpec& state : layer.states) add(state.name, state.shape);
  }
  MarkPositions(network, &table.names);
  return table;
}

// Families that a program has names for, and how an error describes them.
struct Program {
  std::string_view name;
  std::vector<NameTable*> families;
  const char* description;
};

constexpr char kImages[] = "a resnet with form: imagenet and norm: batch is, and a vit";

const std::vector<Program>& Programs() {
  static const auto* const kPrograms = new std::vector<Program>{
      {kHuggingFaceNames, {&NameBert, &NameGpt2, &NameLlama}, "a bert is, a gpt and a llama"},
      {kTorchvisionNames, {&NameVit, &NameResnet}, kImages},
      {kTimmNames, {&NameVit, &NameResnet}, kImages}};
  return *kPrograms;
}

// Elements between neighbours along an axis, in a row-major array.
std::vector<int64_t> Strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (int i = shape.rank() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// A part's elements in our order, as runs along our last axis.
struct Runs {
  Shape extents;                 // of the part, in our axes
  std::vector<int64_t> strides;  // of the tensor, in our axes
  int64_t ours = 0, tensor = 0;  // places of the first element
};

Runs RunsOf(const WeightName& name, size_t index) {
  const WeightPart& part = name.parts[index];
  CHECK_EQ(part.axes.size(), static_cast<size_t>(name.shape.rank())) << part.tensor;
  CHECK_GE(name.shape.rank(), 1) << name.ours;
  const std::vector<int64_t> strides = Strides(part.shape);
  Runs runs;
  std::vector<int64_t> extents = name.shape.extents();
  extents[0] = part.rows;
  runs.extents = Shape(std::move(extents));
  for (const int axis : part.axes) runs.strides.push_back(strides[static_cast<size_t>(axis)]);
  int64_t row = 0;
  for (size_t i = 0; i < index; ++i) row += name.parts[i].rows;
  runs.ours = row * Strides(name.shape)[0];
  runs.tensor = part.first * runs.strides[0];
  return runs;
}

// visit(ours, tensor, count, stride) for each run: `count` elements side by side from `ours` on are
// those from `tensor` on, `stride` apart.
template <typename Visit>
void ForRuns(const Runs& runs, const Visit& visit) {
  if (runs.extents.elements() == 0) return;
  const int last = runs.extents.rank() - 1;
  std::vector<int64_t> at(static_cast<size_t>(last), 0);
  int64_t ours = runs.ours, tensor = runs.tensor;
  for (;;) {
    visit(ours, tensor, runs.extents[last], runs.strides[last]);
    ours += runs.extents[last];
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      tensor += runs.strides[axis];
      if (++at[axis] < runs.extents[axis]) break;
      tensor -= runs.strides[axis] * runs.extents[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

void CheckSizes(const WeightName& name, size_t part, size_t ours, size_t tensor) {
  CHECK_LT(part, name.parts.size()) << name.ours;
  CHECK_EQ(static_cast<int64_t>(ours), name.shape.elements()) << name.ours;
  CHECK_EQ(static_cast<int64_t>(tensor), name.parts[part].shape.elements()) << name.ours;
}

}  // namespace

WeightPart PermutedTensor(std::string tensor, const Shape& shape, std::vector<int> axes) {
  std::vector<int64_t> extents(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    extents[static_cast<size_t>(axes[i])] = shape[static_cast<int>(i)];
  }
  return {.tensor = std::move(tensor),
          .shape = Shape(std::move(extents)),
          .axes = std::move(axes),
          .rows = shape.rank() == 0 ? 1 : shape[0]};
}

WeightPart WholeTensor(std::string tensor, const Shape& shape) {
  return PermutedTensor(std::move(tensor), shape, OwnAxes(shape));
}

WeightPart ConvolutionTensor(std::string tensor, const Shape& shape) {
  CHECK_EQ(shape.rank(), 4) << tensor;
  return PermutedTensor(std::move(tensor), shape, {0, 2, 3, 1});
}

WeightPart TensorWithOnes(std::string tensor, const Shape& shape) {
  WeightPart part = WholeTensor(std::move(tensor), shape);
  std::vector<int64_t> extents = shape.extents();
  while (extents.size() < 3) {
    extents.insert(extents.begin(), 1);
    for (int& axis : part.axes) ++axis;
  }
  part.shape = Shape(std::move(extents));
  return part;
}

std::vector<std::string> WeightTables() {
  std::vector<std::string> tables = {std::string(kOwnNames)};
  for (const Program& program : Programs()) tables.emplace_back(program.name);
  return tables;
}

absl::StatusOr<WeightTable> WeightNames(const Network& network, std::string_view table) {
  const WeightTable own = OwnNames(network);
  if (table == kOwnNames) return own;
  for (const Program& program : Programs()) {
    if (program.name != table) continue;
    absl::Status status;  // of a network of no family the last one's
    for (NameTable* const name : program.families) {
      WeightTable named = own;
      status = name(network, table, &named);
      if (status.ok()) return named;
    }
    return absl::InvalidArgumentError(absl::StrCat("the network is none that ", std::string(table),
                                                   " has names for: it ", status.message(), "; ",
                                                   program.description));
  }
  return absl::NotFoundError(absl::StrCat("there is no table of names \"", std::string(table), "\"",
                                          Suggestion(std::string(table), WeightTables())));
}

void FromTensor(const WeightName& name, size_t part, std::span<const float> tensor,
                std::span<float> ours) {
  CheckSizes(name, part, ours.size(), tensor.size());
  ForRuns(RunsOf(name, part), [&](int64_t to, int64_t from, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; ++i) ours[to + i] = tensor[from + i * stride];
  });
}

void ToTensor(const WeightName& name, size_t part, std::span<const float> ours,
              std::span<float> tensor) {
  CheckSizes(name, part, ours.size(), tensor.size());
  ForRuns(RunsOf(name, part), [&](int64_t from, int64_t to, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; ++i) tensor[to + i * stride] = ours[from + i];
  });
}

}  // namespace stagecoach
