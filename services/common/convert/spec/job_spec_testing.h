// For tests of conversions: two jobs that set every field of a spec to another value than its
// default.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_JOB_SPEC_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_JOB_SPEC_TESTING_H_

#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "plan/data/text.h"
#include "plan/job/job_spec.h"
#include "plan/learning_rates/constant.h"
#include "plan/learning_rates/cosine.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {

inline JobSpec GptJob() {
  JobSpec spec;
  spec.name = "tiny";
  spec.seed = 0xfedcba9876543210;
  spec.precision = Precision::kBfloat16;
  spec.network = GptSpec{2, 32, 4, 16, 256, 0.1};
  spec.data = TextData{.path = "/data/corpus.txt", .bytes = true};
  spec.training.steps = 100;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 4;
  spec.training.optimizer = AdamWSpec{0.8, 0.99, 1e-7, 0.1};
  spec.training.learning_rate = CosineRate{.peak = 3e-4, .warmup_steps = 10, .final = 1e-5};
  spec.training.gradient_clip_norm = 1.0;
  spec.training.max_nonfinite_steps = 3;
  spec.pipeline.stages = 2;
  spec.pipeline.schedule = "one_forward_one_backward";
  spec.pipeline.rematerialization = Rematerialization::kExceptFirst;
  spec.pipeline.partition = {PartitionSpec::Kind::kCuts, {3}};
  spec.pipeline.continue_with_fewer_stages = true;
  spec.pipeline.replacement_timeout_seconds = 0;
  spec.pipeline.mixed_devices = true;
  spec.pipeline.min_stages = 2;
  spec.checkpoint = {20, 0};
  spec.evaluation = {50, 2};
  spec.resume.job = "earlier";
  spec.resume.step = 0;
  spec.resume.fresh_optimizer = true;
  return spec;
}

inline JobSpec LayerJob() {
  JobSpec spec = GptJob();
  SequenceSpec list{32, 16, 256, {}};
  list.layers.push_back({EmbeddingSpec{0.1}});
  ResidualSpec inner;
  inner.layers.push_back({LayerNormSpec{}});
  inner.layers.push_back({AttentionSpec{4, 0.2}});
  inner.layers.push_back({DropoutSpec{0.3}});
  list.layers.push_back({inner});
  list.layers.push_back({MlpSpec{64}});
  list.layers.push_back({GeluSpec{}});
  list.layers.push_back({LinearSpec{256, false}});
  spec.network = list;
  spec.precision = Precision::kTensorFloat32;
  spec.training.optimizer = SgdSpec{0.9, 0.01};
  spec.training.learning_rate = ConstantRate{.peak = 0.5, .warmup_steps = 3};
  spec.pipeline.partition = {PartitionSpec::Kind::kUniform, {}};
  spec.pipeline.rematerialization = Rematerialization::kNever;
  spec.resume.job.clear();
  spec.resume.step = -1;
  spec.resume.fresh_optimizer = false;
  return spec;
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_JOB_SPEC_TESTING_H_
