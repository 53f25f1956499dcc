#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/errors/status.h"
#include "plan/costs/card_memory.h"
#include "plan/plan.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/local/local_cluster.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/output/job_output.h"
#include "services/cli/spec/data_here.h"
#include "services/common/convert/convert_plan.h"
#include "stage/backends/cuda/cudnn/attention/attention_rules.h"
#include "stage/backends/simulated/simulated_backend.h"

namespace stagecoach {
namespace {

// What `stages: auto` means where no fleet is asked.
constexpr int kAutoStages = 2;

// What a device will be, for all that is known here: a card with all that a stage may have.
std::optional<CardProfile> CardToBe(const std::string& device) {
  if (!IsCudaDevice(device)) return std::nullopt;
  return CardProfile{.attention = cudnn::Attention()};
}

// The rate that all devices name, which are simulated: the slowest one, whose pace a pipeline has.
std::optional<double> RateToBe(const std::vector<std::string>& devices) {
  std::optional<double> rate;
  for (const std::string& device : devices) {
    const absl::StatusOr<SimulatedDevice> simulated = ParseSimulatedDevice(device);
    if (!simulated.ok() || !absl::StrContains(device, ':')) return std::nullopt;
    rate = std::min(rate.value_or(simulated->flops_per_second), simulated->flops_per_second);
  }
  return rate;
}

// A processor like this one, whose library may be told to do with less.
HostProfile ProcessorToBe(int threads) {
#if defined(__x86_64__)
  return {.threads = threads, .avx512 = __builtin_cpu_supports("avx512f") != 0};
#else
  return {.threads = threads};
#endif
}

// What makes attention slow on a card, and how its head goes, is known from the job alone.
void NoteCards(const Network& network, const PlanAssumptions& assumptions,
               CommandContext& context) {
  const auto& cards = assumptions.cards;
  const auto card = std::find_if(cards.begin(), cards.end(), [](const auto& c) { return !!c; });
  if (card == cards.end()) return;
  const std::string kernels = KernelsOnCard(**card, network);
  if (!kernels.empty()) context.console->Note(kernels);
  const std::string head = HeadOnCard(network);
  if (!head.empty()) context.console->Note(absl::StrCat("head: ", head));
}

absl::StatusOr<v1::PlanJobResponse> PlanHere(const ValidSpecFile& spec_file,
                                             const PlanOptions& options, CommandContext& context) {
  RETURN_IF_ERROR(ValidateAgain(spec_file));  // with --stages
  const JobSpec& spec = spec_file.job;
  int stages = static_cast<int>(spec.pipeline.stages);
  if (stages == 0) {
    stages = std::max(kAutoStages, static_cast<int>(spec.pipeline.min_stages));
    context.console->Note(
        absl::StrCat("stages: auto is those free when the job starts; planned for ", stages,
                     " (choose with --stages, or ask a cluster with --server)"));
  }
  PlanAssumptions assumptions{.flops_per_second = RateToBe(options.devices),
                              .stage_memory_limit_bytes = options.memory_per_stage};
  if (options.gflops > 0) assumptions.flops_per_second = options.gflops * 1e9;
  const int threads = options.threads_per_stage > 0
                          ? static_cast<int>(options.threads_per_stage)
                          : DefaultThreadsPerStage(stages, options.devices);
  for (int k = 0; k < stages; ++k) {
    assumptions.cards.push_back(CardToBe(options.devices[k % options.devices.size()]));
    assumptions.hosts.push_back(ProcessorToBe(threads));
  }
  const absl::StatusOr<Plan> plan = MakePlan(spec, spec_file.network, stages, assumptions, {});
  if (!plan.ok()) return LocateError(spec_file, plan.status());
  NoteCards(spec_file.network, assumptions, context);
  return ToProto(*plan);
}

absl::StatusOr<v1::PlanJobResponse> PlanThere(const SpecFile& spec_file, CommandContext& context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobClient> client, context.connect(context.client));
  return client->Plan(spec_file.spec);
}

}  // namespace

int RunPlan(const PlanOptions& options, CommandContext& context) {
  absl::StatusOr<ValidSpecFile> spec_file = ReadValidSpec(options.file);
  if (!spec_file.ok()) return context.console->Fail(spec_file.status());
  if (options.stages > 0) {
    spec_file->spec.mutable_pipeline()->set_stages(options.stages);
    spec_file->job.pipeline.stages = options.stages;
  }
  const bool ask_server = options.ask_server || context.address_given;
  if (ask_server && options.memory_per_stage > 0) {
    return context.console->Fail(absl::InvalidArgumentError(
        "--memory-per-stage: a coordinator plans for the memory that its stages have; leave it "
        "out, or ask none: no --server, --address or --cluster"));
  }
  if (ask_server && options.gflops > 0) {
    return context.console->Fail(absl::InvalidArgumentError(
        "--gflops: a coordinator plans by a rate of its own; leave it out, or ask none: no "
        "--server, --address or --cluster"));
  }
  if (ask_server && options.threads_per_stage > 0) {
    return context.console->Fail(absl::InvalidArgumentError(
        "--threads-per-stage: a coordinator plans for the threads that its stages have; leave it "
        "out, or ask none: no --server, --address or --cluster"));
  }
  // A plan needs no data, and tells what a job would cost before it is there.
  const absl::Status data = ask_server ? absl::OkStatus() : CheckDataHere(*spec_file);
  if (!data.ok()) context.console->Note(absl::StrCat("stagecoach: note: ", data.message()));
  const absl::StatusOr<v1::PlanJobResponse> plan =
      ask_server ? PlanThere(*spec_file, context) : PlanHere(*spec_file, options, context);
  if (!plan.ok()) return context.console->Fail(plan.status());
  context.console->Print(context.output == OutputFormat::kTable
                             ? PlanText(*plan, options.show_schedule)
                             : ToJson(*plan, context.output));
  return kExitSuccess;
}

}  // namespace stagecoach
