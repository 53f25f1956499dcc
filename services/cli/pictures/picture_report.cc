#include "services/cli/pictures/picture_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

std::vector<std::string> TableColumns(const PictureReport::Head& head) {
  std::vector<std::string> columns = {"PICTURE"};
  columns.insert(columns.end(), head.columns.begin(), head.columns.end());
  return columns;
}

std::string JsonTextOf(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

PictureReport::PictureReport(const Head& head, OutputFormat format, Console* console)
    : format_(format),
      console_(*console),
      answer_({{"weights", head.weights}, {"pictures", nlohmann::ordered_json::array()}}),
      table_(TableColumns(head), head.right) {}

void PictureReport::Say(nlohmann::ordered_json said) {
  if (format_ == OutputFormat::kNdjson) console_.PrintLine(JsonTextOf(said, -1));
  if (format_ == OutputFormat::kJson) answer_["pictures"].push_back(std::move(said));
}

void PictureReport::Add(const PictureFile& file, const std::vector<std::vector<std::string>>& rows,
                        const nlohmann::ordered_json& said) {
  ++added_;
  nlohmann::ordered_json object = {{"picture", file.path}};
  object.update(said);
  Say(std::move(object));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> row = {i == 0 ? ShownName(file.path) : ""};
    row.insert(row.end(), rows[i].begin(), rows[i].end());
    table_.Add(std::move(row));
  }
}

void PictureReport::Fail(const PictureFile& file, const absl::Status& reason) {
  ++failed_;
  // Some name a file as it is.
  console_.Note(absl::StrCat("stagecoach: ", ShownName(std::string(reason.message()))));
  Say({{"picture", file.path}, {"error", std::string(reason.message())}});
}

int PictureReport::Finish(size_t all) {
  if (format_ == OutputFormat::kJson) console_.PrintLine(JsonTextOf(answer_, 2));
  if (format_ == OutputFormat::kTable && added_ > 0) console_.Print(table_.ToString());
  if (failed_ == 0) return kExitSuccess;
  console_.Note(absl::StrCat("stagecoach: ", failed_, " of ", all,
                             all == 1 ? " picture" : " pictures", " could not be used"));
  return kExitFailed;
}

}  // namespace stagecoach
