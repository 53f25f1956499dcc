#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "services/cli/commands/commands.h"

namespace stagecoach {
namespace {

// Whoever waits at the prompt waits no longer.
constexpr double kPromptSeconds = 1;

// Null: there is no coordinator to ask.
std::unique_ptr<JobClient> ConnectBriefly(const CommandContext& context) {
  ClientOptions options = context.client;
  options.timeout_seconds = std::min(options.timeout_seconds, kPromptSeconds);
  absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(options);
  return client.ok() ? *std::move(client) : nullptr;
}

}  // namespace

void CompleteJobs(CommandContext& context) {
  const std::unique_ptr<JobClient> client = ConnectBriefly(context);
  if (client == nullptr) return;
  const absl::StatusOr<v1::ListJobsResponse> jobs = client->List();
  if (!jobs.ok()) return;
  for (const v1::Job& job : jobs->jobs()) context.console->PrintLine(job.id());
}

void CompleteDataSets(CommandContext& context) {
  const std::unique_ptr<JobClient> client = ConnectBriefly(context);
  if (client == nullptr) return;
  const absl::StatusOr<v1::ListDataSetsResponse> sets = client->data().List();
  if (!sets.ok()) return;
  for (const v1::DataSet& set : sets->data_sets()) {
    context.console->PrintLine(set.name().empty() ? set.id() : set.name());
  }
}

void CompleteClusters(CommandContext& context) {
  const absl::StatusOr<Profile> profile = ReadProfile(ProfilePath());
  if (!profile.ok()) return;
  for (const auto& [name, cluster] : profile->clusters) context.console->PrintLine(name);
}

void CompleteDevices(CommandContext& context) {
  context.console->PrintLine("cpu");
  // The driver's files: to start CUDA takes longer than a prompt should.
  // CUDA counts the cards that it sees from 0, whatever their files are called.
  int cards = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry("/dev", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view number = name;
    int card = 0;
    if (absl::ConsumePrefix(&number, "nvidia") && absl::SimpleAtoi(number, &card)) {
      ++cards;
    }
  }
  for (int k = 0; k < cards; ++k) context.console->PrintLine(absl::StrCat("cuda:", k));
  context.console->PrintLine("reference");
}

}  // namespace stagecoach
