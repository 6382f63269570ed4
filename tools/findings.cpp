#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace straightway::tools {
namespace {

Paint paint_of(Verdict verdict) {
  if (verdict == Verdict::pass) return Paint::good;
  return verdict == Verdict::lacking ? Paint::bad : Paint::doubtful;
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::lacking:
      return "lacking";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

void print(const Section& section, Terminal& terminal) {
  std::size_t width = 0;
  for (const Finding& finding : section.findings) width = std::max(width, finding.subject.size());
  std::string text = terminal.paint(Paint::bold, section.title) + "\n";
  for (const Finding& finding : section.findings) {
    const std::string verdict = fmt::format("{:<7}", to_string(finding.verdict));
    text += fmt::format("  {}  {:<{}}  {}", terminal.paint(paint_of(finding.verdict), verdict),
                        finding.subject, width, finding.fact);
    if (!finding.source.empty()) {
      text += terminal.paint(Paint::faint, fmt::format("  [{}]", finding.source));
    }
    text += '\n';
    if (!finding.fix.empty())
      text += fmt::format("  {:<7}  {:<{}}  fix: {}\n", "", "", width, finding.fix);
  }
  terminal.print(text);
}

Json to_json(const Section& section) {
  Json findings = Json::array();
  for (const Finding& finding : section.findings) {
    Json shown = {{"subject", finding.subject},
                  {"verdict", to_string(finding.verdict)},
                  {"fact", finding.fact},
                  {"source", finding.source}};
    if (!finding.fix.empty()) shown["fix"] = finding.fix;
    findings.push_back(std::move(shown));
  }
  return {{"title", section.title}, {"findings", findings}};
}

}  // namespace straightway::tools
