// straightway explain: the plan of a transfer that is not made.

#include "arguments.hpp"
#include "commands.hpp"
#include "json.hpp"
#include "plan/planner.hpp"
#include "plan/settings.hpp"

namespace straightway::tools {
namespace {

// The file's end, or nothing where the range begins beyond it.
Result<std::uint64_t> default_size(const File& file, std::uint64_t offset) {
  auto size = file.size();
  if (!size) return size;
  return *size > offset ? *size - offset : 0;
}

constexpr std::string_view peer_prefix = "peer:";  // and the address of a PCI device

Result<Plan> explain(const ExplainOptions& options) {
  const bool to_peer = options.to.starts_with(peer_prefix);
  const auto to = to_peer ? Destination{} : parse_destination(options.to);
  if (!to) return to.error();
  OpenOptions open;
  const auto door = parse_door(options.door);
  if (!door) return door.error();
  open.door = *door;
  CallOptions call;
  if (auto applied = apply_choices(options.policy, options.cache, call); !applied) {
    return applied.error();
  }
  const auto offset = plan::parse_size("--offset", options.offset);
  if (!offset) return offset.error();
  call.offset = *offset;
  const auto file = File::open(options.file, options.write ? "r+" : "r", open);
  if (!file) return file.error();
  const auto size = options.size.empty() ? default_size(*file, *offset)
                                         : plan::parse_size("--size", options.size);
  if (!size) return size.error();
  const auto direction = options.write ? Direction::write : Direction::read;
  if (to_peer) {
    return file->explain_peer(direction, options.to.substr(peer_prefix.size()), *size, call);
  }
  auto made = file->explain(direction, to->space, to->device, *size, call);
  if (!made || !options.registered) return made;
  // Registered memory is a fact of the cuFile door alone; the same plan, with that fact.
  Request request = made->request;
  request.registered = true;
  return plan::make_plan(request, {made->file, made->machine, made->peer, {}, false},
                         made->settings);
}

}  // namespace

int run_explain(const ExplainOptions& options, Terminal& terminal) {
  const auto plan = explain(options);
  if (!plan) return terminal.fail(plan.error(), options.json);
  if (options.json) {
    terminal.print_line(dump(parse_json(plan->to_json())));
  } else {
    std::string text = plan->to_text();
    if (!text.ends_with('\n')) text += '\n';
    terminal.print(text);
  }
  return plan->failure == Reason::none ? 0 : 1;
}

}  // namespace straightway::tools
