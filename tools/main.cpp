// straightway, the command line: what each subcommand takes, and its help.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "commands.hpp"
#include "completion.hpp"
#include "interrupt.hpp"
#include "straightway/file.hpp"

namespace straightway::tools {
namespace {

// What the words of the command line ask for.
struct Invocation {
  DemoOptions demo;
  ExplainOptions explain;
  CopyOptions copy;
  CheckOptions check;
  StatsOptions stats;
  BenchOptions bench;
  RunOptions run;
  std::string shell;
};

constexpr const char* policies = "auto|direct|staged";
constexpr const char* caches = "auto|keep|drop|bypass";

// One of the words in "a|b|c", which is also what help and completion show.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::string& words, const std::string& description) {
  const auto check = [words](const std::string& given) -> std::string {
    const std::string all = "|" + words + "|";
    if (!given.empty() && given.find('|') == std::string::npos &&
        all.find("|" + given + "|") != std::string::npos) {
      return "";
    }
    return "'" + given + "' is not one of " + words;
  };
  return app.add_option(name, value, description)->type_name(words)->check(check);
}

// CLI11's own check would print the bounds of a double.
std::string is_pid(const std::string& given) {
  constexpr std::size_t most_digits = 18;
  const bool digits = given.find_first_not_of("0123456789") == std::string::npos;
  const bool zero = given.find_first_not_of('0') == std::string::npos;
  if (digits && !zero && given.size() <= most_digits) return "";
  return "'" + given + "' is no process id";
}

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.footer("Examples:\n" + examples + "\nMore: man straightway-" + name);
  return command;
}

CLI::Option* add_json(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "Print JSON in place of text");
}

void add_demo(CLI::App& app, DemoOptions& options) {
  CLI::App& command = add_command(
      app, "demo",
      "Read a real file into GPU memory (or host memory), verified, with plan and receipt",
      "  straightway demo                    # a file that it makes and removes\n"
      "  straightway demo weights.bin        # yours; it is only read\n"
      "  straightway demo --size 1G\n");
  command.add_option("FILE", options.file, "The file to read; without it, one is made in TMPDIR")
      ->type_name("");
  command
      .add_option("--size", options.size,
                  "Size of the file that is made (256M), or how much of FILE is read (all, at "
                  "most 1G)")
      ->type_name("SIZE");
  command.add_flag("--simulated", options.simulated)->group("");
  add_json(command, options.json);
}

void add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App& command = add_command(
      app, "explain", "Show the plan of a transfer: each route, each refusal, the reasons",
      "  straightway explain weights.bin --to cuda:0\n"
      "  straightway explain weights.bin --policy direct && echo 'would be direct'\n"
      "  straightway explain weights.bin --to cuda:0 --door kvikio --json\n");
  command.add_option("FILE", options.file, "The file")->required()->type_name("");
  command
      .add_option("--to", options.to,
                  "The memory: host, a GPU as cuda:0, or a PCI device's as peer:0000:03:00.0")
      ->type_name("MEMORY")
      ->capture_default_str();
  command.add_option("--offset", options.offset, "Where in the file it begins")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--size", options.size, "How much; default: to the end of the file")
      ->type_name("SIZE");
  add_choice(command, "--policy", options.policy, policies,
             "direct: storage DMA or a refusal; staged: never DMA");
  add_choice(command, "--cache", options.cache, caches, "What becomes of the page cache");
  add_choice(command, "--door", options.door, "straightway|kvikio|cufile",
             "The interface that the program uses")
      ->capture_default_str();
  command.add_flag("--write", options.write, "Explain a write in place of a read");
  command.add_flag("--registered", options.registered, "The memory was registered (cufile door)");
  add_json(command, options.json);
}

void add_copy(CLI::App& app, CopyOptions& options) {
  CLI::App& command = add_command(app, "copy", "Copy a file through host memory, with receipts",
                                  "  straightway copy weights.bin /fast/weights.bin\n"
                                  "  straightway copy --sync full --force new.bin old.bin\n");
  command.add_option("SOURCE", options.source, "The file to copy")->required()->type_name("");
  command.add_option("TARGET", options.target, "The name of the copy")->required()->type_name("");
  command.add_flag("-f,--force", options.force, "Replace TARGET where it exists");
  add_choice(command, "--sync", options.sync, "none|data|full",
             "What is durable when the command ends")
      ->capture_default_str();
  add_choice(command, "--policy", options.policy, policies,
             "direct: storage DMA or a refusal; staged: never DMA");
  add_choice(command, "--cache", options.cache, caches, "What becomes of the page cache");
  add_json(command, options.json);
}

void add_check(CLI::App& app, CheckOptions& options) {
  CLI::App& command = add_command(
      app, "check", "Show the facts of this machine and of a file, and what each route lacks",
      "  straightway check\n"
      "  straightway check weights.bin\n"
      "  straightway check /data             # a folder: its file system and device\n"
      "  straightway check --require direct weights.bin || echo 'through the CPU'\n"
      "  straightway check --format gdscheck # the machine, as NVIDIA's tool reports it\n");
  CLI::Option* file = command.add_option("FILE", options.file, "A file or folder")->type_name("");
  add_choice(command, "--require", options.require, "direct|staged",
             "Exit with 1 where a prerequisite of every such way into the GPU is lacking");
  command
      .add_option("--tree", options.tree,
                  "Look at a copy of another machine's /proc, /sys, /dev, /boot and /etc")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  CLI::Option* format = add_choice(command, "--format", options.format, "gdscheck",
                                   "The machine in the lines of the tool gdscheck -p")
                            ->excludes(file);
  add_json(command, options.json)->excludes(format);
}

void add_stats(CLI::App& app, StatsOptions& options) {
  CLI::App& command = add_command(
      app, "stats", "Show what running processes have moved, by route, size and latency",
      "  straightway stats                   # the processes that keep statistics\n"
      "  straightway stats 4711 --watch=2    # one of them, every two seconds\n"
      "  straightway stats 4711 --json\n"
      "  straightway stats 4711 --format gds_stats --level 3   # of a cuFile program\n");
  CLI::Option* pid =
      command.add_option("PID", options.pid, "The process; without it, all of yours")
          ->type_name("")
          ->check(is_pid);
  command.add_flag("--watch{1}", options.watch,
                   "Again and again, every SECONDS (--watch=2), until Ctrl-C");
  CLI::Option* format =
      add_choice(command, "--format", options.format, "gds_stats",
                 "What Straightway's libcufile.so.0 counts in PID, as the tool gds_stats prints it")
          ->needs(pid);
  add_choice(command, "-l,--level", options.level, "1|2|3",
             "How much of that: totals, sizes too, GPUs too; default: all that is counted")
      ->needs(format);
  add_json(command, options.json)->excludes(format);
}

void add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App& command = add_command(
      app, "bench", "Measure what this machine can do, what Straightway does, and what limits it",
      "  straightway bench                          # a file that it makes and removes\n"
      "  straightway bench /data/weights.bin        # yours; it is only read\n"
      "  straightway bench weights.bin --to host --cases hot,cold --repeat 9\n"
      "  straightway bench weights.bin --json > result.json\n"
      "\n"
      "Cases: hot (all in the page cache, and a process's first call), pinned (with registered\n"
      "pages, for a GPU), cold (for each cache behaviour), mixed (every other 64 MiB hot), small "
      "(4 KiB, 64 KiB and 1 MiB one by one),\n"
      "ranges (up to 100,000 of 16 KiB in one call), write (a temporary file beside FILE).\n"
      "Every byte is verified; a case whose bytes are wrong has no number, and the exit code is "
      "1.\n");
  command.add_option("FILE", options.file, "The file to read; without it, one is made in TMPDIR")
      ->type_name("");
  command.add_option("--to", options.to, "The memory: host, or a GPU; default: cuda:0, else host")
      ->type_name("MEMORY");
  command.add_option("--cases", options.cases, "Which cases, with commas between them")
      ->type_name("CASES")
      ->capture_default_str();
  command
      .add_option(
          "--size", options.size,
          "Size of the file that is made, or how much of FILE is read. Default: at most 4G, "
          "and 1G where the disk is read")
      ->type_name("SIZE");
  command.add_option("--repeat", options.repeat, "How often each case is measured")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--write-to", options.write_to, "The folder for the file that is written")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  command.add_flag("--first-call", options.first_call)->group("");
  add_json(command, options.json);
}

// The program's words are no options of ours, so that the parser does not know that there are any.
class RunUsage : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: straightway run [OPTIONS] PROGRAM [ARGS...]\n";
  }
};

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App& command = add_command(
      app, "run", "Run a program on Straightway's libcufile.so.0, and say what went which way",
      "  straightway run python3 train.py --epochs 3\n"
      "  straightway run --json --output summary.json fio job.fio\n"
      "\n"
      "Whoever in the program looks for a libcufile.so, by name or by an absolute path, gets "
      "ours.\n"
      "The exit code is the program's, 128 + signal where one ended it; 125 where straightway\n"
      "failed, 126 where PROGRAM cannot be executed, 127 where it was not found.\n");
  command.formatter(std::make_shared<RunUsage>());
  command.get_formatter()->column_width(28);
  command.prefix_command();
  command
      .add_option("-o,--output", options.output,
                  "Write the summary to FILE in place of standard error")
      ->type_name("FILE");
  add_json(command, options.json);
  command.final_callback([&] { options.words = command.remaining(); });
}

void add_completion(CLI::App& app, std::string& shell) {
  CLI::App& command =
      add_command(app, "completion", "Print completion for a shell",
                  "  eval \"$(straightway completion bash)\"\n"
                  "  straightway completion zsh > ~/.zfunc/_straightway\n"
                  "  straightway completion fish > ~/.config/fish/completions/straightway.fish\n");
  add_choice(command, "SHELL", shell, "bash|zsh|fish", "The shell")->required();
}

void describe(CLI::App& app, Invocation& invocation) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("straightway ") + version());
  app.get_formatter()->column_width(28);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    const CLI::App* command = failed;
    for (const CLI::App* chosen : failed->get_subcommands()) command = chosen;
    const std::string name =
        command == failed ? "straightway" : "straightway " + command->get_name();
    std::string what = error.what();
    if (command == failed && !failed->remaining().empty()) {
      what = "there is no command '" + failed->remaining().front() + "'";
    }
    return "straightway: " + what + "; see " + name + " --help\n";
  });
  app.footer(
      "Examples:\n"
      "  straightway demo                          # the main job, on a file that it makes\n"
      "  straightway check weights.bin             # what each route lacks for this file\n"
      "  straightway explain weights.bin --to cuda:0\n"
      "  straightway copy weights.bin /fast/weights.bin\n"
      "\n"
      "Sizes are powers of 1024: 4194304, 4M, 4MiB. Exit codes: 0 success, 1 failure, 2 wrong\n"
      "usage, 130 after Ctrl-C. Results go to standard output, all else to standard error.\n"
      "STRAIGHTWAY_* variables set defaults; NO_COLOR turns colours off. More: man straightway");
  add_demo(app, invocation.demo);
  add_explain(app, invocation.explain);
  add_copy(app, invocation.copy);
  add_check(app, invocation.check);
  add_stats(app, invocation.stats);
  add_bench(app, invocation.bench);
  add_run(app, invocation.run);
  add_completion(app, invocation.shell);
}

int dispatch(const CLI::App& app, const Invocation& invocation, Terminal& terminal) {
  if (app.got_subcommand("demo")) return run_demo(invocation.demo, terminal);
  if (app.got_subcommand("explain")) return run_explain(invocation.explain, terminal);
  if (app.got_subcommand("copy")) return run_copy(invocation.copy, terminal);
  if (app.got_subcommand("check")) return run_check(invocation.check, terminal);
  if (app.got_subcommand("stats")) return run_stats(invocation.stats, terminal);
  if (app.got_subcommand("run")) return run_run(invocation.run, terminal);
  if (app.got_subcommand("bench")) return run_bench(invocation.bench, terminal);
  terminal.print(completion(app, invocation.shell));
  return 0;
}

// A full disk or a reader that went away must not look like success.
int end(int code, Terminal& terminal) {
  if (terminal.finish() || code != 0) return code;
  terminal.warn("cannot write to standard output");
  return 1;
}

// Last first, as the parser takes them.
std::vector<std::string> arguments_of(int count, char** words) {
  std::vector<std::string> arguments(words + 1, words + count);
  const bool runs = !arguments.empty() && arguments.front() == "run";
  for (std::size_t i = 1; runs && i < arguments.size() && arguments[i].starts_with('-'); ++i) {
    if (arguments[i] == "--") {
      arguments[i] = end_of_options;
      break;
    }
    if (arguments[i] == "-o" || arguments[i] == "--output") ++i;
  }
  std::ranges::reverse(arguments);
  return arguments;
}

int run(int count, char** words) {
  Terminal terminal;
  Invocation invocation;
  CLI::App app(
      "Moves bytes between files and GPU memory the best way this machine allows, and says which "
      "way every byte went and why.",
      "straightway");
  describe(app, invocation);
  try {
    auto arguments = arguments_of(count, words);
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error) == 0 ? 0 : 2;
    return end(code, terminal);
  }
  return end(dispatch(app, invocation, terminal), terminal);
}

// Descriptors 0 to 2 that the shell closed would be given to the next files that are opened, and
// messages be written into those. What holds their place fails as a closed one does.
void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace
}  // namespace straightway::tools

int main(int count, char** words) {
  straightway::tools::hold_standard_descriptors();
  straightway::tools::ignore_broken_pipes();
  try {
    return straightway::tools::run(count, words);
  } catch (const std::bad_alloc&) {
    straightway::tools::Terminal().warn("out of memory");
  } catch (const std::exception& error) {
    straightway::tools::Terminal().warn(error.what());
  }
  return 1;
}
