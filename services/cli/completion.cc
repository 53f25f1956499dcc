#include "services/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace stagecoach {
namespace {

struct OptionWords {
  std::vector<std::string> names;   // "--output", "-o"
  std::vector<std::string> values;  // of which it wants one; empty: anything
  std::string description;
  bool wants_value = false;
};

// What may stand behind a command, or behind the program where there is none yet.
struct CommandWords {
  std::string name, description;
  std::vector<std::string> nested;
  std::vector<OptionWords> options;  // its own, then the shared ones that it does not hide
  std::vector<std::string> values;   // of a word that is no option; empty: a file
};

// Without those that are hidden, which have no group.
std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

// Values that the script asks the client for when they are wanted; silent if it has no answer.
constexpr char kJobs[] = "$(stagecoach __complete jobs 2>/dev/null)";
constexpr char kDevices[] = "$(stagecoach __complete devices 2>/dev/null)";

// "TEXT:{table,json,ndjson}" is how CLI11 shows a list of values.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  if (absl::StartsWith(option.get_description(), "job id")) return {kJobs};
  if (option.check_lname("device")) return {kDevices};
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

void AddOptions(const CLI::App& app, CommandWords* words) {
  std::set<std::string> known;
  for (const OptionWords& option : words->options) {
    known.insert(option.names.begin(), option.names.end());
  }
  for (const CLI::Option* option : app.get_options()) {
    OptionWords found;
    for (const std::string& name : option->get_lnames()) found.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) found.names.push_back("-" + name);
    if (found.names.empty()) {
      words->values = ValuesOf(*option);
      continue;
    }
    if (known.count(found.names[0]) > 0) continue;
    found.values = ValuesOf(*option);
    found.description = option->get_description();
    found.wants_value = option->get_expected_max() > 0 && option->get_type_size_max() > 0;
    words->options.push_back(std::move(found));
  }
}

// The first is the program itself.
std::vector<CommandWords> AllWords(const CLI::App& app) {
  std::vector<CommandWords> all;
  CommandWords program;
  AddOptions(app, &program);
  for (const CLI::App* command : Subcommands(app)) program.nested.push_back(command->get_name());
  all.push_back(std::move(program));
  for (const CLI::App* command : Subcommands(app)) {
    CommandWords words;
    words.name = command->get_name();
    words.description = command->get_description();
    for (const CLI::App* nested : Subcommands(*command)) {
      words.nested.push_back(nested->get_name());
      AddOptions(*nested, &words);
    }
    AddOptions(*command, &words);
    AddOptions(app, &words);
    all.push_back(std::move(words));
  }
  return all;
}

std::vector<std::string> WordsOf(const CommandWords& command) {
  std::vector<std::string> words = command.nested;
  words.insert(words.end(), command.values.begin(), command.values.end());
  for (const OptionWords& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// "    'local --device'|..." cases would be long: values are the same for an option of one name.
std::string ValueCases(const std::vector<CommandWords>& all, const std::string& before,
                       const std::string& after) {
  std::string cases;
  std::set<std::string> done;
  for (const CommandWords& command : all) {
    for (const OptionWords& option : command.options) {
      if (option.values.empty() || !done.insert(option.names[0]).second) continue;
      absl::StrAppend(&cases, "    ", absl::StrJoin(option.names, "|"), ") ", before,
                      absl::StrJoin(option.values, " "), after, " ;;\n");
    }
  }
  return cases;
}

std::string Bash(const std::vector<CommandWords>& all) {
  std::string cases;
  for (const CommandWords& command : all) {
    // An option is completed without asking the coordinator.
    const std::string words = absl::StrReplaceAll(absl::StrJoin(WordsOf(command), " "),
                                                  {{"$(", "$([[ $current == -* ]] || "}});
    absl::StrAppend(&cases, "    ", command.name.empty() ? "''" : command.name, ") words=\"", words,
                    "\" ;;\n");
  }
  return absl::StrCat(
      "# bash completion of stagecoach; load it with:  source <(stagecoach completion bash)\n"
      "_stagecoach() {\n"
      "  local command=\"\" words=\"\" current i\n"
      // "cuda:1" comes as three words, and of it bash replaces what stands behind the colon.
      "  local -a line=()\n"
      "  for ((i = 0; i <= COMP_CWORD; i++)); do\n"
      "    if [[ $i -gt 0 && ( ${COMP_WORDS[i]} == : || ${line[-1]} == *: ) ]]; then "
      "line[-1]+=\"${COMP_WORDS[i]}\"\n"
      "    else line+=(\"${COMP_WORDS[i]}\")\n"
      "    fi\n"
      "  done\n"
      "  current=\"${line[-1]}\"\n"
      "  for ((i = 1; i < ${#line[@]} - 1; i++)); do\n"
      "    case \" ",
      absl::StrJoin(all[0].nested, " "),
      " \" in\n"
      "      *\" ${line[i]} \"*) command=\"${line[i]}\"; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command\" in\n",
      cases,
      "  esac\n"
      "  case \"${line[${#line[@]}-2]}\" in\n",
      ValueCases(all, "words=\"", "\""),
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  if [ ${#COMPREPLY[@]} -eq 0 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      // A folder gets its slash, and a name its quotes.
      "    compopt -o filenames 2>/dev/null\n"
      "  fi\n"
      "  case \"$COMP_WORDBREAKS\" in\n"
      "    *:*) COMPREPLY=(\"${COMPREPLY[@]#\"${current%\"${current##*:}\"}\"}\") ;;\n"
      "  esac\n"
      "}\n"
      "complete -F _stagecoach stagecoach\n");
}

// In single quotes of any shell but fish's, whose own escape is the backslash.
std::string Quoted(const std::string& text, const std::string& quote) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", quote}}), "'");
}

// 'name:description', where _describe takes the first colon for the border.
std::string ZshEntry(const std::string& name, const std::string& description) {
  return Quoted(absl::StrCat(absl::StrReplaceAll(name, {{":", "\\:"}}), ":", description), "'\\''");
}

std::string Zsh(const std::vector<CommandWords>& all) {
  std::string commands, options, words;
  for (const CommandWords& command : all) {
    if (!command.name.empty()) {
      absl::StrAppend(&commands, "    ", ZshEntry(command.name, command.description), "\n");
    }
    absl::StrAppend(&options, "    ", command.name.empty() ? "''" : command.name, ") options=(\n");
    for (const OptionWords& option : command.options) {
      for (const std::string& name : option.names) {
        absl::StrAppend(&options, "      ", ZshEntry(name, option.description), "\n");
      }
    }
    absl::StrAppend(&options, "      ) ;;\n");
    std::vector<std::string> plain = command.nested;
    plain.insert(plain.end(), command.values.begin(), command.values.end());
    if (command.name.empty() || plain.empty()) continue;
    absl::StrAppend(&words, "    ", command.name, ") values=(", absl::StrJoin(plain, " "),
                    ") ;;\n");
  }
  return absl::StrCat(
      "#compdef stagecoach\n"
      "# zsh completion of stagecoach; load it with:  source <(stagecoach completion zsh)\n"
      "# after compinit, or put it into a folder of $fpath as _stagecoach.\n"
      "_stagecoach() {\n"
      "  local -a commands options values\n"
      "  local command='' word\n"
      "  commands=(\n",
      commands,
      "  )\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    if (( ${commands[(I)${word}:*]} )); then command=$word; break; fi\n"
      "  done\n"
      "  case $command in\n",
      options,
      "  esac\n"
      "  case $command in\n",
      words,
      "  esac\n"
      "  case ${words[CURRENT-1]} in\n",
      ValueCases(all, "compadd ", "; return"),
      "  esac\n"
      "  if [[ ${words[CURRENT]} == -* ]]; then _describe -o option options\n"
      "  elif [[ -z $command ]]; then _describe command commands\n"
      "  elif (( ${#values} )); then compadd $values\n"
      "  else _files\n"
      "  fi\n"
      "}\n"
      "if [[ $funcstack[1] == _stagecoach ]]; then _stagecoach \"$@\"\n"
      "elif (( $+functions[compdef] )); then compdef _stagecoach stagecoach\n"
      "fi\n");
}

// Between single quotes: fish runs "(...)" when the values are wanted.
std::string FishValues(const std::vector<std::string>& values) {
  return absl::StrReplaceAll(absl::StrJoin(values, " "), {{"$(", "("}});
}

std::string FishOption(const OptionWords& option, const std::string& condition) {
  std::string line = absl::StrCat("complete -c stagecoach -n '", condition, "'");
  for (const std::string& name : option.names) {
    const bool is_long = name.size() > 2;
    absl::StrAppend(&line, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  if (!option.values.empty()) {
    absl::StrAppend(&line, " -x -a '", FishValues(option.values), "'");
  } else if (option.wants_value) {
    absl::StrAppend(&line, " -r");
  }
  return absl::StrCat(line, " -d ", Quoted(option.description, "\\'"), "\n");
}

std::string Fish(const std::vector<CommandWords>& all) {
  const std::string names = absl::StrJoin(all[0].nested, " ");
  std::string script = absl::StrCat(
      "# fish completion of stagecoach; load it with:  stagecoach completion fish | source\n");
  for (const CommandWords& command : all) {
    const bool is_program = command.name.empty();
    const std::string condition = is_program
                                      ? "not __fish_seen_subcommand_from " + names
                                      : absl::StrCat("__fish_seen_subcommand_from ", command.name);
    if (!is_program) {
      absl::StrAppend(&script, "complete -c stagecoach -f -n 'not __fish_seen_subcommand_from ",
                      names, "' -a ", command.name, " -d ", Quoted(command.description, "\\'"),
                      "\n");
    }
    std::vector<std::string> plain = is_program ? std::vector<std::string>() : command.nested;
    plain.insert(plain.end(), command.values.begin(), command.values.end());
    if (!plain.empty()) {
      absl::StrAppend(&script, "complete -c stagecoach -f -n '", condition, "' -a '",
                      FishValues(plain), "'\n");
    }
    for (const OptionWords& option : command.options) {
      absl::StrAppend(&script, FishOption(option, condition));
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, const std::string& shell) {
  const std::vector<CommandWords> all = AllWords(app);
  if (shell == "bash") return Bash(all);
  if (shell == "zsh") return Zsh(all);
  CHECK(shell == "fish") << "no completion for " << shell;
  return Fish(all);
}

}  // namespace stagecoach
