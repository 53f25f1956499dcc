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

constexpr char kDefaultAddress[] = "localhost:8001";

}  // namespace

CommandTree::CommandTree(Console* console, StopSignal* stop)
    : app_("Trains neural networks by pipeline parallelism.", "stagecoach") {
  context_.console = console;
  context_.stop = stop;
  context_.client.address = kDefaultAddress;
  app_.require_subcommand(1);
  app_.fallthrough();  // shared options may stand behind the command too
  AddSharedOptions();
  AddRunCommands(*this);
  AddClusterCommands(*this);
  AddWeightCommands(*this);
  AddScoreCommand(*this);
  AddTokenizerCommands(*this);
  Add("version", "Print the version", RunVersion);
  AddCompletion();
}

int CommandTree::Run(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParse(error);
  }
  context_.address_given = address_->count() > 0;
  return run_();
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
  address_ = app_.add_option("--address", context_.client.address, "coordinator, host:port")
                 ->envname("STAGECOACH_ADDRESS")
                 ->capture_default_str();
  app_.add_option("--timeout", context_.client.timeout_seconds, "seconds that one call may take")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app_.add_option_function<std::string>(
          "-o,--output",
          [this](const std::string& name) { context_.output = *ParseOutputFormat(name); },
          "how results are printed")
      ->check(CLI::IsMember({"table", "json", "ndjson"}))
      ->default_str("table");
  TlsFlags& tls = context_.client.tls;
  app_.add_flag("--grpc-use-ssl", tls.use_ssl, "mutual TLS to the coordinator");
  app_.add_option("--grpc-server-cert", tls.server_cert, "PEM certificate of this client")
      ->type_name("FILE");
  app_.add_option("--grpc-server-key", tls.server_key, "PEM private key of this client")
      ->type_name("FILE");
  app_.add_option("--grpc-root-cert", tls.root_cert, "PEM certificates of the authority")
      ->type_name("FILE");
  app_.add_option("--token-file", tls.token_file,
                  "in place of a certificate: the file with the token to call with")
      ->type_name("FILE");
}

CLI::App* CommandTree::AddChoice(CLI::App* parent, const std::string& name,
                                 const std::string& description, std::function<int()> run) {
  CLI::App* command = (parent == nullptr ? &app_ : parent)->add_subcommand(name, description);
  command->callback([this, run = std::move(run)] { run_ = run; });
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
