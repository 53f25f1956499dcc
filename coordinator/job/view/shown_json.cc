#include "coordinator/job/view/shown_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace stagecoach {
namespace {

using ShownJson = nlohmann::json;

std::string NameOfClass(const std::vector<std::string>& classes, int32_t id) {
  return id >= 0 && id < std::ssize(classes) ? classes[static_cast<size_t>(id)] : "";
}

absl::Status NotOurs() {
  return absl::DataLossError("the journal's text of shown pictures is not what was written");
}

}  // namespace

std::string EncodeShownPictures(const std::vector<std::string>& files) {
  ShownJson json = ShownJson::array();
  for (const std::string& file : files) json.push_back(absl::Base64Escape(file));
  return json.dump();
}

absl::StatusOr<std::vector<std::string>> DecodeShownPictures(const std::string& text) {
  std::vector<std::string> files;
  if (text.empty()) return files;
  const ShownJson json = ShownJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return NotOurs();
  for (const ShownJson& entry : json) {
    std::string file;
    if (!entry.is_string() || !absl::Base64Unescape(entry.get<std::string>(), &file)) {
      return NotOurs();
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::string EncodeShownAnswers(const ShownAnswers& shown, const std::vector<std::string>& classes) {
  ShownJson answers = ShownJson::array();
  for (const ShownAnswer& answer : shown.answers) {
    // A probability that is no number becomes null.
    answers.push_back({answer.label, answer.answer, answer.probability,
                       NameOfClass(classes, answer.label), NameOfClass(classes, answer.answer)});
  }
  ShownJson json = {{"step", shown.step}, {"answers", std::move(answers)}};
  for (const ShownTranslation& one : shown.translations) {
    json["translations"].push_back({one.number, one.source, one.reference, one.translation});
  }
  return json.dump(-1, ' ', false, ShownJson::error_handler_t::replace);
}

absl::StatusOr<NamedAnswers> DecodeShownAnswers(const std::string& text) {
  NamedAnswers named;
  if (text.empty()) return named;
  // nlohmann::json reports by exceptions; they end here.
  try {
    const ShownJson json = ShownJson::parse(text);
    named.step = json.at("step");
    for (const ShownJson& entry : json.at("answers")) {
      const ShownJson& probability = entry.at(2);
      named.answers.push_back(
          {.shown = {.label = entry.at(0),
                     .answer = entry.at(1),
                     .probability = probability.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                          : probability.get<double>()},
           .label_name = entry.at(3),
           .answer_name = entry.at(4)});
    }
    if (!json.contains("translations")) return named;
    for (const ShownJson& entry : json.at("translations")) {
      named.translations.push_back({.number = entry.at(0),
                                    .source = entry.at(1),
                                    .reference = entry.at(2),
                                    .translation = entry.at(3)});
    }
  } catch (const ShownJson::exception&) {
    return NotOurs();
  }
  return named;
}

ShownTexts EncodeNews(const HeldOutWatch& now, const HeldOutWatch& written,
                      const std::vector<std::string>& classes) {
  ShownTexts news;
  if (now.pictures != written.pictures) news.pictures = EncodeShownPictures(*now.pictures);
  if (now.answers != written.answers) news.answers = EncodeShownAnswers(*now.answers, classes);
  return news;
}

}  // namespace stagecoach
