#include "completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace straightway::tools {
namespace {

struct Choice {
  std::string name;  // "--policy"
  std::string description;
  bool takes_value = false;
  std::vector<std::string> values;  // empty: any
};

// "auto|direct|staged"
std::vector<std::string> split_values(const std::string& type_name) {
  std::vector<std::string> values;
  if (type_name.find('|') == std::string::npos) return values;
  std::size_t begin = 0;
  while (begin <= type_name.size()) {
    const auto end = std::min(type_name.find('|', begin), type_name.size());
    values.push_back(type_name.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

// The first line of a description, without what quotes would break.
std::string plain(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']' || c == ':'; });
  return text;
}

std::vector<Choice> options_of(const CLI::App& command) {
  std::vector<Choice> choices;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) {
      choices.push_back({"--" + name, plain(option->get_description()),
                         option->get_expected_min() > 0 && option->get_type_size() > 0,
                         split_values(option->get_type_name())});
    }
  }
  return choices;
}

std::vector<std::string> positional_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) return split_values(option->get_type_name());
  }
  return {};
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Its words are those of another command, which the shell knows better.
bool runs_others(const CLI::App& command) { return command.get_prefix_command(); }

std::string bash_case(const CLI::App& command) {
  std::vector<std::string> names;
  std::string values;
  for (const Choice& choice : options_of(command)) {
    names.push_back(choice.name);
    if (choice.values.empty()) continue;
    values += fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                          choice.name, join(choice.values));
  }
  std::string text = fmt::format("    {})\n", command.get_name());
  if (!values.empty()) text += "      case $previous in\n" + values + "      esac\n";
  if (runs_others(command)) {
    text +=
        "      if [ \"$COMP_CWORD\" -gt 2 ] && [[ ${COMP_WORDS[2]} != -* ]]; then return; fi\n"
        "      if [[ $word != -* ]]; then COMPREPLY=($(compgen -c -- \"$word\")); return; fi\n";
  }
  return text + fmt::format("      options='{}' words='{}' ;;\n", join(names),
                            join(positional_values(command)));
}

std::string bash(const CLI::App& app) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    cases += bash_case(*command);
  }
  std::vector<std::string> options;
  for (const Choice& choice : options_of(app)) options.push_back(choice.name);
  return fmt::format(R"(# bash completion for straightway
_straightway() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local options='{}' words='{}'
  if [ "$previous" = = ]; then previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  if [ "$word" = = ]; then word='' previous=${{COMP_WORDS[COMP_CWORD - 1]}}; fi
  if [ "$COMP_CWORD" -gt 1 ]; then
    words=''
    case ${{COMP_WORDS[1]}} in
{}    esac
  fi
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi ;;
  esac
}}
complete -o bashdefault -o default -F _straightway straightway
)",
                     join(options), join(names), cases);
}

std::string zsh_command(const CLI::App& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.get_name());
  for (const Choice& choice : options_of(command)) {
    std::string action;
    if (choice.takes_value) {
      action =
          choice.values.empty() ? ":value:_files" : fmt::format(":value:({})", join(choice.values));
    }
    text += fmt::format(" \\\n        '{}{}[{}]{}'", choice.name, choice.takes_value ? "=" : "",
                        choice.description, action);
  }
  const auto values = positional_values(command);
  if (runs_others(command)) {
    return text + " \\\n        '(-):program:_command_names -e' '*::argument:_normal' ;;\n";
  }
  text += values.empty() ? " \\\n        '*:file:_files' ;;\n"
                         : fmt::format(" \\\n        ':word:({})' ;;\n", join(values));
  return text;
}

std::string zsh(const CLI::App& app) {
  std::string described;
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    described +=
        fmt::format("    '{}:{}'\n", command->get_name(), plain(command->get_description()));
    cases += zsh_command(*command);
  }
  return fmt::format(R"(#compdef straightway
_straightway() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[show help]' '--version[show the version]'
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT -= 1 ))
  case $command in
{}  esac
}}
_straightway "$@"
)",
                     described, cases);
}

std::string fish(const CLI::App& app) {
  std::string text = "# fish completion for straightway\n";
  for (const Choice& choice : options_of(app)) {
    text += fmt::format("complete -c straightway -n __fish_use_subcommand -l {} -d '{}'\n",
                        choice.name.substr(2), choice.description);
  }
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c straightway -f -n __fish_use_subcommand -a {} -d '{}'\n",
                        command->get_name(), plain(command->get_description()));
    const std::string seen = fmt::format("'__fish_seen_subcommand_from {}'", command->get_name());
    for (const Choice& choice : options_of(*command)) {
      text += fmt::format("complete -c straightway -n {} -l {} -d '{}'", seen,
                          choice.name.substr(2), choice.description);
      if (choice.takes_value) text += choice.values.empty() ? " -r" : " -x";
      if (!choice.values.empty()) text += fmt::format(" -a '{}'", join(choice.values));
      text += '\n';
    }
    if (runs_others(*command)) {
      text +=
          fmt::format("complete -c straightway -n {} -x -a '(__fish_complete_subcommand)'\n", seen);
    }
    if (const auto values = positional_values(*command); !values.empty()) {
      text += fmt::format("complete -c straightway -f -n {} -a '{}'\n", seen, join(values));
    }
  }
  return text;
}

}  // namespace

std::string completion(const CLI::App& app, const std::string& shell) {
  if (shell == "zsh") return zsh(app);
  if (shell == "fish") return fish(app);
  return bash(app);
}

}  // namespace straightway::tools
