#include "services/cli/command_mistake.h"

#include <CLI/CLI.hpp>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/suggest.h"

namespace stagecoach {
namespace {

// What other programs call the same; no spelling is near.
const std::map<std::string, std::string>& OtherWords() {
  static const auto* const words = new std::map<std::string, std::string>{
      {"train", "local"},     {"run", "local"},      {"start", "local"},     {"up", "local"},
      {"create", "submit"},   {"apply", "submit"},   {"check", "validate"},  {"lint", "validate"},
      {"ls", "list"},         {"ps", "list"},        {"status", "describe"}, {"show", "describe"},
      {"get", "describe"},    {"follow", "watch"},   {"tail", "watch"},      {"stop", "cancel"},
      {"kill", "cancel"},     {"delete", "cancel"},  {"log", "logs"},        {"profile", "trace"},
      {"sample", "generate"}, {"infer", "generate"}, {"ping", "health"}};
  return *words;
}

// The command that the words so far chose; `app` itself if none.
const CLI::App& Chosen(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : Chosen(*chosen.back());
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// "--steps" of the command and of those above it.
std::vector<std::string> LongOptions(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

std::string NoSuchCommand(const CLI::App& chosen, const std::string& word) {
  const std::vector<std::string> names = CommandNames(chosen);
  const std::string where =
      chosen.get_parent() == nullptr ? "" : absl::StrCat(" of ", chosen.get_name());
  const std::string is_none = absl::StrCat("\"", word, "\" is no command", where);
  const auto other = OtherWords().find(word);
  if (chosen.get_parent() == nullptr && other != OtherWords().end()) {
    return absl::StrCat(is_none, "; did you mean \"", other->second, "\"?");
  }
  return absl::StrCat(is_none, Suggestion(word, names));
}

}  // namespace

std::string DescribeMistake(const CLI::App& app, const std::string& why) {
  const CLI::App& chosen = Chosen(app);
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const std::vector<std::string> commands = CommandNames(chosen);
  if (!commands.empty()) {  // a command is still to be named
    for (const std::string& word : left) {
      if (!IsOption(word)) return NoSuchCommand(chosen, word);
    }
  }
  for (const std::string& word : left) {
    if (!absl::StartsWith(word, "--") || word.size() == 2) continue;
    const std::string name = word.substr(0, word.find('='));
    return absl::StrCat(name, ": no such option", DidYouMean(name, LongOptions(&chosen)));
  }
  if (commands.empty()) return why;
  return absl::StrCat("a command is missing; known here: ", absl::StrJoin(commands, ", "));
}

}  // namespace stagecoach
