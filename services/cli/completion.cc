#include "services/cli/completion.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stagecoach {
namespace {

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "    checkpoints) words="list verify --help" ;;" lines, one a command.
std::string Cases(const CLI::App& app) {
  const std::vector<std::string> shared = OptionNames(app);
  std::string cases;
  for (const CLI::App* command : Subcommands(app)) {
    std::vector<std::string> words;
    for (const CLI::App* nested : Subcommands(*command)) words.push_back(nested->get_name());
    for (const std::string& name : OptionNames(*command)) words.push_back(name);
    for (const std::string& name : shared) {
      if (std::find(words.begin(), words.end(), name) == words.end()) words.push_back(name);
    }
    absl::StrAppend(&cases, "    ", command->get_name(), ") words=\"", absl::StrJoin(words, " "),
                    "\" ;;\n");
  }
  return cases;
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : Subcommands(app)) commands.push_back(command->get_name());
  return absl::StrCat(
      "# bash completion of stagecoach; load it with:  source <(stagecoach completion bash)\n"
      "_stagecoach() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" command=\"\" words i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \" ",
      absl::StrJoin(commands, " "),
      " \" in\n"
      "      *\" ${COMP_WORDS[i]} \"*) command=\"${COMP_WORDS[i]}\"; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command\" in\n",
      Cases(app), "    *) words=\"", absl::StrJoin(commands, " "), " ",
      absl::StrJoin(OptionNames(app), " "),
      "\" ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- \"$current\")); fi\n"
      "}\n"
      "complete -F _stagecoach stagecoach\n");
}

}  // namespace stagecoach
