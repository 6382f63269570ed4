// What accounting costs. Budget: a receipt of a small read with its entry in the ledger, 150 ns;
// the entry alone, 60 ns.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "receipt/ledger.hpp"

namespace straightway {
namespace {

// What a small read's receipt shares with all others of its file.
struct Shared {
  std::shared_ptr<const FileFacts> file = std::make_shared<FileFacts>();
  std::shared_ptr<const MachineFacts> machine = std::make_shared<MachineFacts>();
  std::shared_ptr<const Settings> settings = std::make_shared<Settings>();
};

Receipt small_read(const Shared& shared) {
  Receipt receipt;
  receipt.memory = {SpaceKind::host, -1, 0x1000, 4096};
  receipt.wanted_bytes = 4096;
  receipt.moved_bytes = 4096;
  receipt.routes[index(Route::buffered)] = {
      4096, 1, Reason::small_request, {EvidenceKind::observed, Witness::own_copy, Scope::request}};
  receipt.refused[index(Route::nvfs)] = Reason::space_is_host;
  receipt.refused[index(Route::p2pdma)] = Reason::space_is_host;
  receipt.threads = 1;
  receipt.times = {1'000, 1'000, 0, 3'000};
  receipt.file = shared.file;
  receipt.machine = shared.machine;
  receipt.settings = shared.settings;
  return receipt;
}

receipt::Ledger& ledger() {
  static const auto made = [] {
    auto created = receipt::Ledger::create();
    if (!created) std::abort();
    return std::move(*created);
  }();
  return *made;
}

void make_a_receipt(benchmark::State& state) {
  const Shared shared;
  for (auto _ : state) benchmark::DoNotOptimize(small_read(shared));
}
BENCHMARK(make_a_receipt);

void add_to_the_ledger(benchmark::State& state) {
  const Shared shared;
  const Receipt receipt = small_read(shared);
  receipt::Ledger& target = ledger();
  for (auto _ : state) target.add(receipt);
}
BENCHMARK(add_to_the_ledger)->ThreadRange(1, 8);

void make_a_receipt_and_add_it(benchmark::State& state) {
  const Shared shared;
  receipt::Ledger& target = ledger();
  for (auto _ : state) {
    const Receipt receipt = small_read(shared);
    target.add(receipt);
    benchmark::DoNotOptimize(receipt);
  }
}
BENCHMARK(make_a_receipt_and_add_it);

}  // namespace
}  // namespace straightway
