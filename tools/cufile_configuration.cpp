#include "cufile_configuration.hpp"

#include "cufile/environment.hpp"

namespace straightway::tools {
namespace {

constexpr const char* places = "/etc/cufile.json, /usr/local/cuda/gds/cufile.json";

std::string source_of(const cufile::Remark& remark, const std::string& file,
                      const MachineTree& tree) {
  if (!remark.place.empty()) return tree.shown(remark.place);
  return remark.origin == Origin::environment ? "environment" : tree.shown(file);
}

std::string advice_for(const cufile::Remark& remark) {
  if (remark.unknown) return "correct its name, or remove it";
  return remark.error ? "correct the value" : "leave it for the vendor's library, or remove it";
}

// What does not count is said as the library says it in its log.
Finding remark_finding(const cufile::Remark& remark, const std::string& file,
                       const MachineTree& tree) {
  return {Verdict::lacking, remark.key, remark.what, source_of(remark, file, tree),
          advice_for(remark)};
}

}  // namespace

Result<cufile::Configuration> read_cufile_configuration(const MachineTree& tree) {
  const auto environment = [&](const char* name) {
    return tree.is_here() ? cufile::read_variable(name) : std::nullopt;
  };
  return cufile::load_configuration(environment, {}, tree.root());
}

Section configuration_section(const MachineTree& tree) {
  Section section{"Configuration of libcufile.so.0", {}};
  const auto read = read_cufile_configuration(tree);
  if (!read) {
    const Error& error = read.error();
    const bool in_file = !error.path.empty();
    section.findings.push_back({Verdict::lacking, "cufile.json",
                                in_file ? error.why : error.attempted + ": " + error.why,
                                in_file ? tree.shown(error.path) : "environment",
                                in_file ? "correct the file" : "correct the variable"});
    return section;
  }
  const std::string& file = read->file();
  section.findings.push_back(
      {Verdict::pass, "cufile.json",
       file.empty() ? "none: the shipped values hold" : tree.shown(file) + " is in force",
       file.empty() ? places : tree.shown(file)});
  for (const cufile::Remark& remark : read->remarks()) {
    section.findings.push_back(remark_finding(remark, file, tree));
  }
  return section;
}

}  // namespace straightway::tools
