#include "services/cli/completion.h"

#include <CLI/CLI.hpp>
#include <set>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

// Bash breaks words at ":" and "=": "cuda:1" comes as three, and bash replaces the last one.
// Of FILE and the like it also gives a folder its slash, and a name its quotes.
constexpr char kBash[] =
    R"sh(# bash completion of stagecoach; load it with:  source <(stagecoach completion bash)
_stagecoach() {
  local current word files i
  local -a line=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if [[ $i -gt 0 && ( ${COMP_WORDS[i]} == [:=] || ${line[-1]} == *[:=] ) ]]; then
      line[-1]+="${COMP_WORDS[i]}"
    else
      line+=("${COMP_WORDS[i]}")
    fi
  done
  current="${line[-1]}"
  [[ $current != --*=* ]] || current="${current#*=}"
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case "$word" in
      FILE|PATH) files=-f ;;
      DIR) files=-d ;;
      "$current"*) COMPREPLY+=("$word") ;;
    esac
  done < <("${line[0]/#\~/$HOME}" __complete -- "${line[@]}" 2>/dev/null)
  if [[ -n $files ]]; then
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $files -- "$current")
    compopt -o filenames 2>/dev/null
  fi
  case "$COMP_WORDBREAKS" in
    *:*) COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}") ;;
  esac
}
complete -F _stagecoach stagecoach
)sh";

constexpr char kZsh[] = R"sh(#compdef stagecoach
# zsh completion of stagecoach; load it with:  source <(stagecoach completion zsh)
# after compinit, or put it into a folder of $fpath as _stagecoach.
_stagecoach() {
  local -a entries
  local entry
  for entry in ${(f)"$("$words[1]" __complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)"}; do
    case $entry in
      FILE|PATH) _files ;;
      DIR) _files -/ ;;
      *) entries+=("${${entry//:/\\:}/$'\t'/:}") ;;
    esac
  done
  if (( ${#entries} )); then _describe value entries; fi
}
if [[ $funcstack[1] == _stagecoach ]]; then _stagecoach "$@"
elif (( $+functions[compdef] )); then compdef _stagecoach stagecoach
fi
)sh";

constexpr char kFish[] =
    R"sh(# fish completion of stagecoach; load it with:  stagecoach completion fish | source
function __stagecoach_complete
  set -l line (commandline -opc)
  set -l current (commandline -ct)
  for entry in ($line[1] __complete -- $line "$current" 2>/dev/null)
    switch $entry
      case FILE PATH
        __fish_complete_path "$current"
      case DIR
        __fish_complete_directories "$current"
      case '*'
        echo $entry
    end
  end
end
complete -c stagecoach -f -a '(__stagecoach_complete)'
)sh";

// The place of the word to complete: behind a command, and perhaps the value of an option.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* option = nullptr;
  size_t positionals = 0;  // of the command, in front of the word
};

const CLI::App* FindCommand(const CLI::App& above, const std::string& name) {
  const auto found =
      above.get_subcommands([&](const CLI::App* command) { return command->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

// Of the command, or shared by those above it.
const CLI::Option* FindOption(const CLI::App* command, const std::string& name) {
  const CLI::Option* found = nullptr;
  for (; found == nullptr && command != nullptr; command = command->get_parent()) {
    found = command->get_option_no_throw(name);
  }
  return found;
}

Place PlaceBehind(const CLI::App& app, std::span<const std::string> words) {
  Place place{.command = &app};
  for (const std::string& word : words) {
    if (place.option != nullptr) {
      place.option = nullptr;  // the word is its value
    } else if (absl::StartsWith(word, "-")) {
      const CLI::Option* option = FindOption(place.command, word);
      if (option != nullptr && option->get_type_size_max() > 0) place.option = option;  // no flag
    } else if (const CLI::App* nested = FindCommand(*place.command, word)) {
      place.command = nested;
    } else {
      ++place.positionals;
    }
  }
  return place;
}

const CLI::Option* PositionalAt(const Place& place) {
  size_t left = place.positionals;
  for (const CLI::Option* option : place.command->get_options()) {
    if (option->get_positional() && (left-- == 0 || option->get_expected_max() > 1)) return option;
  }
  return nullptr;
}

void PrintEntry(const std::string& word, const std::string& description, CommandContext& context) {
  context.console->PrintLine(absl::StrCat(word, "\t", description));
}

void PrintCommands(const CLI::App& above, CommandContext& context) {
  for (const CLI::App* command : above.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;  // hidden
    PrintEntry(command->get_name(), command->get_description(), context);
  }
}

// Each once: a command's own hides the shared one.
void PrintOptions(const CLI::App* command, CommandContext& context) {
  std::set<std::string> printed;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const absl::string_view name : absl::StrSplit(option->get_name(false, true), ',')) {
        if (!absl::StartsWith(name, "-") || !printed.emplace(name).second) continue;
        PrintEntry(std::string(name), option->get_description(), context);
      }
    }
  }
}

// CLI11 writes a list of values as "TEXT:{table,json}".
void PrintValues(const CLI::Option& option, CommandContext& context) {
  const std::string type = option.get_type_name();
  for (const absl::string_view kind : absl::StrSplit(type, absl::ByAnyChar("|:{,}"))) {
    if (kind == "JOB") {
      CompleteJobs(context);
    } else if (kind == "DATASET") {
      CompleteDataSets(context);
    } else if (kind == "CLUSTER") {
      CompleteClusters(context);
    } else if (kind == "DEVICE") {
      CompleteDevices(context);
    } else if (kind == "FILE" || kind == "DIR" || kind == "PATH") {
      context.console->PrintLine(std::string(kind));
    } else if (!kind.empty() && absl::ascii_islower(static_cast<unsigned char>(kind[0]))) {
      PrintEntry(std::string(kind), option.get_description(), context);
    }
  }
}

}  // namespace

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  CHECK(shell == "fish") << "no completion for " << shell;
  return kFish;
}

int RunComplete(const CLI::App& app, std::span<const std::string> line, CommandContext& context) {
  if (line.size() < 2) return kExitUsage;
  const std::string& word = line.back();
  Place place = PlaceBehind(app, line.subspan(1, line.size() - 2));
  if (const size_t sign = word.find('='); absl::StartsWith(word, "--") && sign != word.npos) {
    place.option = FindOption(place.command, word.substr(0, sign));
  }
  if (place.option != nullptr) {
    PrintValues(*place.option, context);
  } else if (absl::StartsWith(word, "-")) {
    PrintOptions(place.command, context);
  } else if (const CLI::Option* positional = PositionalAt(place)) {
    PrintValues(*positional, context);
  } else {
    PrintCommands(*place.command, context);
  }
  return kExitSuccess;
}

}  // namespace stagecoach
