// A task has some channels of one sample: whole groups, 64 channels or a little fewer, or one wide
// group. It walks the places kSumRows at a time, widened where they are BF16; sums over these are
// added in double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stage/backends/cpu/kernels/group_norm.cc"
#include "hwy/foreach_target.h"
// Highway's own header must come after foreach_target.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "operations/norms/group_norm.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/vector-inl.h"

#ifndef STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_GROUP_NORM_ONCE_
#define STAGECOACH_STAGE_BACKENDS_CPU_KERNELS_GROUP_NORM_ONCE_
namespace stagecoach::cpu {

using GroupNumbers = std::array<float, kBlockColumns>;  // a number a channel
// By channel, what rows are normalized with, and what a row's gradient is made of.
struct GroupColumns {
  GroupNumbers mean, rstd, weight, bias, mean_g, mean_gx;
};
// Rows of `columns` channels, each `stride` behind the last.
struct GroupRows {
  int64_t rows, stride, columns;
};

}  // namespace stagecoach::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

// sums[columns] = of x - mean.
void GroupCentredSums(const GroupRows& s, const float* x, const float* mean, float* sums) {
  const F32 d;
  ForEachVector(s.columns, [&](int64_t i, auto at) HWY_ATTR {
    const auto own = at.Load(mean + i);
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < s.rows; ++r) {
      sum = hn::Add(sum, hn::Sub(at.Load(x + r * s.stride + i), own));
    }
    at.Store(sum, sums + i);
  });
}

// sums[columns] = of (x - mean)^2.
void GroupCentredSquares(const GroupRows& s, const float* x, const float* mean, float* sums) {
  const F32 d;
  ForEachVector(s.columns, [&](int64_t i, auto at) HWY_ATTR {
    const auto own = at.Load(mean + i);
    auto sum = hn::Zero(d);
    for (int64_t r = 0; r < s.rows; ++r) {
      const auto centred = hn::Sub(at.Load(x + r * s.stride + i), own);
      sum = hn::MulAdd(centred, centred, sum);
    }
    at.Store(sum, sums + i);
  });
}

// products[columns] = the sums of dy * xhat, sums[columns] = of dy.
void GroupProducts(const GroupRows& s, const GroupColumns& by, const float* dy, const float* x,
                   float* products, float* sums) {
  const F32 d;
  ForEachVector(s.columns, [&](int64_t i, auto at) HWY_ATTR {
    const auto mean = at.Load(by.mean.data() + i), rstd = at.Load(by.rstd.data() + i);
    auto product = hn::Zero(d), sum = hn::Zero(d);
    for (int64_t r = 0; r < s.rows; ++r) {
      const auto own = at.Load(dy + r * s.stride + i);
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + r * s.stride + i), mean), rstd);
      product = hn::MulAdd(own, xhat, product);
      sum = hn::Add(sum, own);
    }
    at.Store(product, products + i);
    at.Store(sum, sums + i);
  });
}

// y may be x.
void GroupNormRows(const GroupRows& s, const GroupColumns& by, const float* x, float* y,
                   int64_t y_stride) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.stride, y += y_stride) {
    ForEachVector(s.columns, [&](int64_t i, auto at) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), at.Load(by.mean.data() + i)),
                                at.Load(by.rstd.data() + i));
      at.Store(hn::MulAdd(xhat, at.Load(by.weight.data() + i), at.Load(by.bias.data() + i)), y + i);
    });
  }
}

// dx may be dy.
void GroupNormGradientRows(const GroupRows& s, const GroupColumns& by, const float* dy,
                           const float* x, float* dx, int64_t dx_stride) {
  for (int64_t r = 0; r < s.rows; ++r, dy += s.stride, x += s.stride, dx += dx_stride) {
    ForEachVector(s.columns, [&](int64_t i, auto at) HWY_ATTR {
      const auto rstd = at.Load(by.rstd.data() + i);
      const auto xhat = hn::Mul(hn::Sub(at.Load(x + i), at.Load(by.mean.data() + i)), rstd);
      const auto g = hn::Mul(at.Load(dy + i), at.Load(by.weight.data() + i));
      const auto centred = hn::Sub(g, at.Load(by.mean_g.data() + i));
      const auto rest = hn::NegMulAdd(xhat, at.Load(by.mean_gx.data() + i), centred);
      at.Store(hn::Mul(rstd, rest), dx + i);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stagecoach::cpu {

HWY_EXPORT(GroupCentredSums);
HWY_EXPORT(GroupCentredSquares);
HWY_EXPORT(GroupProducts);
HWY_EXPORT(GroupNormRows);
HWY_EXPORT(GroupNormGradientRows);

namespace {

constexpr int64_t kArea = kSumRows * kBlockColumns;

struct Groups {
  int64_t places, channels, groups;
  int64_t width() const { return channels / groups; }
  // Of a task: whole groups.
  int64_t GroupsOfTask() const { return std::max<int64_t>(1, kBlockColumns / width()); }
  int64_t Tasks() const { return (groups + GroupsOfTask() - 1) / GroupsOfTask(); }
};

Groups GroupsOf(const ValueType& x, const ValueType& mean) {
  const int64_t channels = x.shape.back();
  return {x.shape.elements() / channels, channels, mean.shape.back()};
}

// Columns of one sample that are worked on at a time: several groups, or a part of a wide one.
struct Columns {
  int64_t sample, first, count;
};

// One task: its groups, and its columns at most kBlockColumns at a time.
class Task {
 public:
  Task(const Groups& s, int64_t index, float* room) : s_(s), room_(room) {
    sample_ = index / s.Tasks();
    first_group_ = index % s.Tasks() * s.GroupsOfTask();
    end_group_ = std::min(s.groups, first_group_ + s.GroupsOfTask());
  }
  int64_t sample() const { return sample_; }
  int64_t first_group() const { return first_group_; }
  int64_t end_group() const { return end_group_; }
  int64_t row(int64_t group) const { return sample_ * s_.groups + group; }

  template <typename Body>
  void ForColumns(const Body& body) const {
    const int64_t end = end_group_ * s_.width();
    for (int64_t first = first_group_ * s_.width(); first < end; first += kBlockColumns) {
      body(Columns{sample_, first, std::min(kBlockColumns, end - first)});
    }
  }

  // body(rows, start, at): `at[i]` is operand i from element `start` on.
  template <size_t kCount, typename Body>
  void ForRows(const Columns& columns, const std::array<const Tensor*, kCount>& operands,
               const Body& body) const {
    const bool narrow = IsBfloat16(*operands[0]);
    for (int64_t place = 0; place < s_.places; place += kSumRows) {
      const int64_t some = std::min(kSumRows, s_.places - place);
      const int64_t start = (columns.sample * s_.places + place) * s_.channels + columns.first;
      std::array<const float*, kCount> at;
      for (size_t i = 0; i < kCount; ++i) {
        if (!narrow) {  // there is no room
          at[i] = operands[i]->template data<float>() + start;
          continue;
        }
        float* const area = room_ + static_cast<int64_t>(i) * kArea;
        at[i] = area;
        WidenRows(operands[i]->template data<Bfloat16>() + start, s_.channels, area, some,
                  columns.count);
      }
      body(GroupRows{some, narrow ? columns.count : s_.channels, columns.count}, start, at);
    }
  }

  // body(rows, at, to, to_stride): what `to` gets is y's.
  template <size_t kCount, typename Body>
  void WriteRows(const Columns& columns, const std::array<const Tensor*, kCount>& operands,
                 const Tensor& y, const Body& body) const {
    const bool narrow = IsBfloat16(y);
    ForRows(columns, operands,
            [&](const GroupRows& rows, int64_t start, const std::array<const float*, kCount>& at) {
              if (!narrow) return body(rows, at, y.data<float>() + start, s_.channels);
              float* const area = room_ + kCount * kArea;
              body(rows, at, area, rows.columns);
              for (int64_t r = 0; r < rows.rows; ++r) {
                Narrow(area + r * rows.columns, y.data<Bfloat16>() + start + r * s_.channels,
                       rows.columns);
              }
            });
  }

  // numbers[i] = of[row of the group of column i].
  void Expand(const Columns& columns, const float* of, GroupNumbers& numbers) const {
    for (int64_t i = 0; i < columns.count; ++i) {
      numbers[static_cast<size_t>(i)] = of[row((columns.first + i) / s_.width())];
    }
  }

  // result[row of a group] = the mean over the group of what `sums` gives of these columns' rows.
  template <typename Sums>
  void MeanOfGroups(const Tensor& x, float* result, const Sums& sums) const {
    std::array<double, kBlockColumns> totals = {};
    ForColumns([&](const Columns& columns) {
      ForRows<1>(columns, {&x},
                 [&](const GroupRows& rows, int64_t, const std::array<const float*, 1>& at) {
                   GroupNumbers of_rows;
                   sums(columns, rows, at[0], of_rows.data());
                   for (int64_t i = 0; i < columns.count; ++i) {
                     totals[static_cast<size_t>((columns.first + i) / s_.width() - first_group_)] +=
                         of_rows[static_cast<size_t>(i)];
                   }
                 });
    });
    const auto count = static_cast<double>(s_.places * s_.width());
    for (int64_t g = first_group_; g < end_group_; ++g) {
      result[row(g)] = static_cast<float>(totals[static_cast<size_t>(g - first_group_)] / count);
    }
  }

 private:
  const Groups s_;
  float* const room_;
  int64_t sample_, first_group_, end_group_;
};

// body(task) for all tasks of so many samples; a task has room for three areas.
template <typename Body>
void ForEachTask(CpuBackend& backend, const Groups& s, const Tensor& x, const Body& body) {
  const bool narrow = IsBfloat16(x);
  const int rooms =
      backend.ReserveRooms(narrow ? 3 * kArea * static_cast<int64_t>(sizeof(float)) : 0);
  if (rooms == 0) return;
  const int64_t samples = x.elements() / (s.places * s.channels);
  backend.ForEachBlock(rooms, samples * s.Tasks(), 1,
                       [&](int64_t first, int64_t count, int worker) {
                         for (int64_t i = first; i < first + count; ++i) {
                           body(Task(s, i, narrow ? backend.WorkerScratch(worker) : nullptr));
                         }
                       });
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto epsilon = static_cast<float>(AttributesOf<GroupNormAttributes>(call).epsilon);
  const Groups s = GroupsOf(types.inputs[0], types.outputs[1]);
  return Kernel([&backend, epsilon, s](const KernelContext&, const KernelArguments& a) {
    const Tensor &x = a.inputs[0], &y = a.outputs[0];
    const float *weight = a.inputs[1].data<float>(), *bias = a.inputs[2].data<float>();
    float *mean = a.outputs[1].data<float>(), *rstd = a.outputs[2].data<float>();
    ForEachTask(backend, s, x, [&](const Task& task) {
      const GroupNumbers zeros = {};
      task.MeanOfGroups(x, mean,
                        [&](const Columns&, const GroupRows& rows, const float* at, float* sums) {
                          HWY_DYNAMIC_DISPATCH(GroupCentredSums)(rows, at, zeros.data(), sums);
                        });
      task.MeanOfGroups(
          x, rstd,
          [&](const Columns& columns, const GroupRows& rows, const float* at, float* sums) {
            GroupNumbers own;
            task.Expand(columns, mean, own);
            HWY_DYNAMIC_DISPATCH(GroupCentredSquares)(rows, at, own.data(), sums);
          });
      for (int64_t g = task.first_group(); g < task.end_group(); ++g) {
        float& own = rstd[task.row(g)];
        own = 1.0f / std::sqrt(own + epsilon);
      }
      task.ForColumns([&](const Columns& columns) {
        GroupColumns by;
        task.Expand(columns, mean, by.mean);
        task.Expand(columns, rstd, by.rstd);
        std::copy_n(weight + columns.first, columns.count, by.weight.data());
        std::copy_n(bias + columns.first, columns.count, by.bias.data());
        task.WriteRows<1>(columns, {&x}, y,
                          [&](const GroupRows& rows, const std::array<const float*, 1>& at,
                              float* to, int64_t stride) {
                            HWY_DYNAMIC_DISPATCH(GroupNormRows)(rows, by, at[0], to, stride);
                          });
      });
    });
  });
}

absl::StatusOr<Kernel> Sums(CpuBackend& backend, const Call&, const CallTypes& types, DType) {
  const Groups s = GroupsOf(types.inputs[0], types.inputs[2]);
  return Kernel([&backend, s](const KernelContext&, const KernelArguments& a) {
    const Tensor &dy = a.inputs[0], &x = a.inputs[1];
    const float *mean = a.inputs[2].data<float>(), *rstd = a.inputs[3].data<float>();
    ForEachTask(backend, s, x, [&](const Task& task) {
      task.ForColumns([&](const Columns& columns) {
        GroupColumns by;
        task.Expand(columns, mean, by.mean);
        task.Expand(columns, rstd, by.rstd);
        std::array<double, kBlockColumns> products = {}, sums = {};
        task.ForRows<2>(columns, {&dy, &x},
                        [&](const GroupRows& rows, int64_t, const std::array<const float*, 2>& at) {
                          GroupNumbers product, sum;
                          HWY_DYNAMIC_DISPATCH(GroupProducts)
                          (rows, by, at[0], at[1], product.data(), sum.data());
                          for (size_t i = 0; i < static_cast<size_t>(columns.count); ++i) {
                            products[i] += product[i];
                            sums[i] += sum[i];
                          }
                        });
        const int64_t to = columns.sample * s.channels + columns.first;
        for (int64_t i = 0; i < columns.count; ++i) {
          a.outputs[0].data<float>()[to + i] = static_cast<float>(products[static_cast<size_t>(i)]);
          a.outputs[1].data<float>()[to + i] = static_cast<float>(sums[static_cast<size_t>(i)]);
        }
      });
    });
  });
}

// of each group the mean of weight * sums.
float GroupMean(const Groups& s, int64_t sample, int64_t group, const float* weight,
                const float* sums) {
  double total = 0;
  for (int64_t c = group * s.width(); c < (group + 1) * s.width(); ++c) {
    total += double{weight[c]} * sums[sample * s.channels + c];
  }
  return static_cast<float>(total / static_cast<double>(s.places * s.width()));
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call&, const CallTypes& types,
                                     DType) {
  const Groups s = GroupsOf(types.inputs[0], types.inputs[3]);
  return Kernel([&backend, s](const KernelContext&, const KernelArguments& a) {
    const Tensor &dy = a.inputs[0], &x = a.inputs[1], &dx = a.outputs[0];
    const float *weight = a.inputs[2].data<float>(), *mean = a.inputs[3].data<float>(),
                *rstd = a.inputs[4].data<float>(), *products = a.inputs[5].data<float>(),
                *sums = a.inputs[6].data<float>();
    ForEachTask(backend, s, x, [&](const Task& task) {
      GroupNumbers mean_g, mean_gx;  // of the task's groups
      for (int64_t g = task.first_group(); g < task.end_group(); ++g) {
        const auto at = static_cast<size_t>(g - task.first_group());
        mean_g[at] = GroupMean(s, task.sample(), g, weight, sums);
        mean_gx[at] = GroupMean(s, task.sample(), g, weight, products);
      }
      task.ForColumns([&](const Columns& columns) {
        GroupColumns by;
        task.Expand(columns, mean, by.mean);
        task.Expand(columns, rstd, by.rstd);
        std::copy_n(weight + columns.first, columns.count, by.weight.data());
        for (int64_t i = 0; i < columns.count; ++i) {
          const int64_t group = (columns.first + i) / s.width();
          const auto at = static_cast<size_t>(group - task.first_group());
          by.mean_g[static_cast<size_t>(i)] = mean_g[at];
          by.mean_gx[static_cast<size_t>(i)] = mean_gx[at];
        }
        task.WriteRows<2>(columns, {&dy, &x}, dx,
                          [&](const GroupRows& rows, const std::array<const float*, 2>& at,
                              float* to, int64_t stride) {
                            HWY_DYNAMIC_DISPATCH(GroupNormGradientRows)
                            (rows, by, at[0], at[1], to, stride);
                          });
      });
    });
  });
}

absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    for (const size_t of : {size_t{0}, size_t{1}}) {
      const int64_t channels = a.adds[of].elements();
      const float* const x = a.inputs[of].data<float>();
      const int64_t samples = a.inputs[of].elements() / channels;
      float* const sums = a.adds[of].data<float>();
      backend.ForEachBlock(channels, kBlockColumns, [&](int64_t first, int64_t count, int) {
        ColumnSums(x + first, sums + first, samples, channels, count);
      });
    }
  });
}

}  // namespace

KernelList GroupNormKernels() {
  return {{"group_norm", Forward},
          {"group_norm_sums", Sums},
          {"group_norm_input_gradient", InputGradient},
          {"group_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
#endif  // HWY_ONCE
