#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/weight_options.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/pictures/picture_network.h"
#include "services/cli/pictures/picture_report.h"
#include "stage/data/picture_source.h"

namespace stagecoach {
namespace {

// Rows of the table, and the same for programs.
struct Classified {
  std::vector<std::vector<std::string>> rows;
  nlohmann::ordered_json said;
};

Classified Classify(const PictureNetwork& network, std::span<const float> logits, int64_t top) {
  Classified classified;
  nlohmann::ordered_json& classes = classified.said["classes"];
  classes = nlohmann::ordered_json::array();
  for (const ClassShare& share : LikeliestClasses(logits, top)) {
    const std::string name = network.ClassName(share.id);
    classified.rows.push_back({name.empty() ? absl::StrCat(share.id) : ShownName(name),
                               absl::StrFormat("%.4f", share.probability)});
    nlohmann::ordered_json one = {{"class", share.id}};
    if (!name.empty()) one["name"] = name;
    one["probability"] = share.probability;
    classes.push_back(std::move(one));
  }
  return classified;
}

// Of pictures that need not be readable. An error is one of the network.
absl::Status ClassifyBatch(const PictureNetwork& network, std::span<const PictureFile> files,
                           const ClassifyOptions& options, PictureReport* report) {
  std::vector<absl::StatusOr<Picture>> read(files.size());
  const auto read_one = [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    read[at] = ReadPicture(files[at], network.form().channels, network.form().upright);
    if (read[at].ok()) read[at] = FitPicture(*read[at], network.form().augmentation);
    return absl::OkStatus();
  };
  const int64_t others = ThreadsHere(options.weights) - 1;  // beside this one
  RETURN_IF_ERROR(ForEachPicture(others, std::ssize(files), read_one));
  std::vector<Picture> pictures;
  for (absl::StatusOr<Picture>& picture : read) {
    if (picture.ok()) pictures.push_back(*std::move(picture));
  }
  std::vector<std::vector<float>> logits;
  if (!pictures.empty()) {
    ASSIGN_OR_RETURN(logits, network.Run(pictures));
  }
  size_t next = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!read[i].ok()) {
      report->Fail(files[i], read[i].status());
      continue;
    }
    const std::vector<float>& own = logits[next++];
    if (!std::all_of(own.begin(), own.end(), [](float x) { return std::isfinite(x); })) {
      report->Fail(files[i], absl::DataLossError(absl::StrCat(
                                 ShownName(files[i].path),
                                 ": the network gives numbers that are not finite for it")));
      continue;
    }
    const Classified classified = Classify(network, own, options.top);
    report->Add(files[i], classified.rows, classified.said);
  }
  return absl::OkStatus();
}

}  // namespace

int RunClassify(const ClassifyOptions& options, CommandContext& context) {
  const absl::StatusOr<FoundWeights> found = FindWeights(options.weights, context);
  if (!found.ok()) return context.console->Fail(found.status());
  const absl::StatusOr<std::unique_ptr<PictureNetwork>> network =
      PictureNetwork::Load(found->source.weights_file(), found->spec, found->facts,
                           PictureAnswer::kClass, MakeBackendHere(options.weights));
  if (!network.ok()) return context.console->Fail(network.status());
  const std::vector<PictureFile> files = FindPictures(options.pictures);
  PictureReport report(
      {.weights = found->source.name(), .columns = {"CLASS", "PROBABILITY"}, .right = {2}},
      context.output, context.console);
  const size_t batch = (*network)->batch();
  for (size_t first = 0; first < files.size() && !context.stop->requested(); first += batch) {
    const auto some = std::span(files).subspan(first, std::min(batch, files.size() - first));
    const absl::Status status = ClassifyBatch(**network, some, options, &report);
    if (!status.ok()) return context.console->Fail(status);
  }
  const int code = report.Finish(files.size());
  return context.stop->requested() ? kExitInterrupted : code;
}

}  // namespace stagecoach
