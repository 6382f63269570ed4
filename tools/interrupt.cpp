#include "interrupt.hpp"

#include <csignal>

namespace straightway::tools {
namespace {

volatile std::sig_atomic_t noted_signal = 0;  // what a handler may write, and nothing else

bool pipes_were_ignored = false;

void note(int signal) { noted_signal = signal; }

}  // namespace

void ignore_broken_pipes() { pipes_were_ignored = std::signal(SIGPIPE, SIG_IGN) == SIG_IGN; }

bool broken_pipes_were_ignored() { return pipes_were_ignored; }

void notice_interrupts() {
  struct sigaction action{};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    // What the parent had ignored (nohup, a shell's background job) stays ignored.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

int interrupted() { return noted_signal; }

int interrupted_exit_code() { return 128 + noted_signal; }

Result<Receipt> wait_for(const Job& job, const std::function<void(const Progress&)>& tick) {
  bool cancelled = false;
  while (true) {
    const bool done = job.done();
    auto receipt = job.result(std::chrono::milliseconds(50));
    if (done || receipt.ok() || receipt.error().kind != ErrorKind::deadline_exceeded) {
      return receipt;
    }
    if (interrupted() != 0 && !cancelled) cancelled = job.cancel();
    if (tick) tick(job.progress());
  }
}

}  // namespace straightway::tools
