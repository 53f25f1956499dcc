#include "services/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/cli/command_mistake.h"
#include "services/cli/command_tree.h"
#include "services/cli/completion.h"
#include "services/cli/output/exit_code.h"

namespace stagecoach {
namespace {

// "coordinator; default: $STAGECOACH_ADDRESS". Not CLI11's own variables: a cluster that a flag names
// goes before an address that a variable has.
std::string OrVariable(const char* what, const char* variable) {
  return absl::StrCat(what, "; default: $", variable);
}

// The variable of a script was not set, and the profile's cluster would be asked instead.
std::string CheckNotEmpty(const std::string& given) {
  return given.empty() ? "is empty; name it, or leave the option out" : "";
}

}  // namespace

CommandTree::CommandTree(Console* console, StopSignal* stop)
    : app_("Trains neural networks by pipeline parallelism.", "stagecoach") {
  context_.console = console;
  context_.stop = stop;
  app_.require_subcommand(1);
  app_.fallthrough();  // shared options may stand behind the command too
  AddSharedOptions();
  AddRunCommands(*this);
  AddClusterCommands(*this);
  AddWeightCommands(*this);
  AddScoreCommand(*this);
  AddTokenizerCommands(*this);
  AddSetupCommands(*this);
  Add("version", "Print the version", RunVersion);
  AddCompletion();
}

int CommandTree::Run(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParse(error);
  }
  ChooseClient();
  return run_();
}

// A profile that cannot be used matters to the commands that connect.
void CommandTree::ChooseClient() {
  const absl::StatusOr<ConnectionSettings> variables = ReadConnectionVariables();
  const absl::StatusOr<Connection> chosen =
      variables.ok() ? ChooseConnection(context_.flags, *variables, ProfilePath())
                     : absl::StatusOr<Connection>(variables.status());
  context_.address_given =
      context_.flags.names_coordinator() || (variables.ok() && variables->names_coordinator());
  ClientOptions& client = context_.client;
  client.problem = chosen.status();
  if (!chosen.ok()) return;
  client.address = chosen->address;
  client.tls = chosen->tls;
  client.cluster = chosen->cluster;
}

int CommandTree::ReportParse(const CLI::ParseError& error) {
  // Help is no error, but comes as one.
  std::ostringstream out, errors;
  const int code = app_.exit(error, out, errors);
  if (!out.str().empty()) context_.console->Print(out.str());
  if (code == 0) return kExitSuccess;
  context_.console->Note(absl::StrCat("stagecoach: ", DescribeMistake(app_, error.what()),
                                      "\nRun with --help for more."));
  return kExitUsage;
}

void CommandTree::AddSharedOptions() {
  AddConnectionOptions();
  app_.add_option("--timeout", context_.client.timeout_seconds, "seconds that one call may take")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app_.add_option_function<std::string>(
          "-o,--output",
          [this](const std::string& name) { context_.output = *ParseOutputFormat(name); },
          "how results are printed")
      ->check(CLI::IsMember({"table", "json", "ndjson"}))
      ->default_str("table");
}

void CommandTree::AddConnectionOptions() {
  ConnectionSettings& flags = context_.flags;
  const auto add = [this](const char* name, std::string* target, const std::string& what,
                          const char* type) {
    app_.add_option(name, *target, what)->type_name(type)->check(CheckNotEmpty);
  };
  add("--address", &flags.address,
      absl::StrCat(OrVariable("coordinator, host:port", kAddressVariable),
                   ", else that of the cluster, else ", kDefaultAddress),
      "TEXT");
  add("--cluster", &flags.cluster,
      absl::StrCat(OrVariable("a cluster of the profile (`config`)", kClusterVariable),
                   ", else the profile's current one"),
      "CLUSTER");
  app_.add_flag_function(
      "--grpc-use-ssl", [&flags](int64_t count) { flags.use_ssl = count > 0; },
      OrVariable("mutual TLS to the coordinator", kTlsVariable));
  add("--grpc-server-cert", &flags.server_cert,
      OrVariable("PEM certificate of this client", kTlsCertVariable), "FILE");
  add("--grpc-server-key", &flags.server_key,
      OrVariable("PEM private key of this client", kTlsKeyVariable), "FILE");
  add("--grpc-root-cert", &flags.root_cert,
      OrVariable("PEM certificates of the authority", kTlsCaVariable), "FILE");
  add("--token-file", &flags.token_file,
      OrVariable("in place of a certificate: the file with the token to call with",
                 kTokenFileVariable),
      "FILE");
}

CLI::App* CommandTree::AddChoice(CLI::App* parent, const std::string& name,
                                 const std::string& description, std::function<int()> run) {
  CLI::App* command = (parent == nullptr ? &app_ : parent)->add_subcommand(name, description);
  // That of a command inside comes first.
  command->callback([this, run = std::move(run)] {
    if (run_ == nullptr) run_ = run;
  });
  return command;
}

void CommandTree::AddCompletion() {
  CLI::App* completion = AddChoice(nullptr, "completion", "Print a completion script", [this] {
    context_.console->Print(CompletionScript(shell_));
    return static_cast<int>(kExitSuccess);
  });
  completion->add_option("shell", shell_, "whose script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  CLI::App* complete = AddChoice(nullptr, "__complete", "Answer a completion script",
                                 [this] { return RunComplete(app_, line_, context_); });
  complete->group("");  // hidden
  complete->add_option("line", line_, "behind --, a command line up to the word to complete");
}

int RunCommandLine(int argc, const char* const* argv, Console* console, StopSignal* stop) {
  return CommandTree(console, stop).Run(argc, argv);
}

}  // namespace stagecoach
