#include "coordinator/job/step_decision.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

namespace {

// A processor gives a sign to what is not a number, which nobody should read.
double WithoutSign(double loss) {
  return std::isnan(loss) ? std::numeric_limits<double>::quiet_NaN() : loss;
}

// Added layer by layer, in order.
absl::StatusOr<double> SquaredNorm(std::span<const StepReport> reports,
                                   std::span<const std::vector<LayerRange>> cells, int layers) {
  CHECK_EQ(reports.size(), cells.size()) << "cells of each stage";
  std::vector<double> norms;
  std::vector<bool> seen(static_cast<size_t>(layers), false);
  norms.resize(seen.size());
  int reported = 0;
  for (size_t k = 0; k < reports.size(); ++k) {
    auto next = reports[k].layer_squared_norms.begin();
    reported += static_cast<int>(reports[k].layer_squared_norms.size());
    for (const LayerRange& cell : cells[k]) {
      for (int i = cell.first; i < cell.last; ++i) {
        if (next == reports[k].layer_squared_norms.end() || i >= layers) break;
        norms[static_cast<size_t>(i)] = *next++;
        seen[static_cast<size_t>(i)] = true;
      }
    }
  }
  if (reported != layers || std::find(seen.begin(), seen.end(), false) != seen.end()) {
    return absl::InternalError(absl::StrCat("stages reported gradient norms of ", reported,
                                            " layers, the model has ", layers));
  }
  return std::accumulate(norms.begin(), norms.end(), 0.0);
}

}  // namespace

absl::StatusOr<StepDecision> DecideStep(std::span<const StepReport> reports,
                                        std::span<const std::vector<LayerRange>> cells, int layers,
                                        double gradient_clip_norm) {
  StepDecision decision;
  ASSIGN_OR_RETURN(const double squared_norm, SquaredNorm(reports, cells, layers));
  bool has_loss = false;
  for (const StepReport& report : reports) {
    decision.finite = decision.finite && report.finite;
    if (!report.has_loss) continue;
    if (report.targets <= 0) return absl::InternalError("a stage reported the loss of no target");
    has_loss = true;
    decision.targets = report.targets;
    decision.empty = report.terms == 0;
    decision.loss = WithoutSign(report.loss_sum / report.terms);
    decision.measures = MeansOf(report.measures, report.terms);
    const PaddingCount& padding = report.padding;
    if (padding.positions > 0) {
      decision.measures.push_back(
          {kPadding, static_cast<double>(padding.padded) / static_cast<double>(padding.positions)});
    }
  }
  if (!has_loss) return absl::InternalError("no stage reported a loss");
  decision.gradient_norm = std::sqrt(squared_norm);
  if (!std::isfinite(decision.loss) || !std::isfinite(decision.gradient_norm)) {
    decision.finite = false;
  }
  if (decision.finite && gradient_clip_norm > 0 && decision.gradient_norm > gradient_clip_norm) {
    decision.gradient_scale = gradient_clip_norm / decision.gradient_norm;
  }
  return decision;
}

std::vector<Measure> MeansOf(const std::vector<Measure>& sums, double terms) {
  std::vector<Measure> means;
  for (const Measure& measure : sums) {
    const double mean = measure.value / terms;
    if (std::isfinite(mean)) means.push_back({measure.name, mean});
  }
  return means;
}

double MeasuredBubble(std::span<const StepReport> reports, double step_seconds) {
  if (reports.empty() || step_seconds <= 0) return 0;
  double busy = 0;
  for (const StepReport& report : reports) {
    busy += report.phases[Phase::kForward] + report.phases[Phase::kRecompute] +
            report.phases[Phase::kBackward];
  }
  const double bubble = 1 - busy / (static_cast<double>(reports.size()) * step_seconds);
  return std::clamp(bubble, 0.0, 1.0);
}

}  // namespace stagecoach
