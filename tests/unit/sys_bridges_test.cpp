// SPDX-License-Identifier: BSD-3-Clause
// Which bridges lead nowhere outside this host. The tests use files as the kernel has them below
// /sys/class/net.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sys/sys.hpp"

namespace stretto::test {
namespace {

class Interfaces {
 public:
  Interfaces() : root_(std::filesystem::temp_directory_path() / ("stretto-bridges-" + std::to_string(::getpid()))) {}
  ~Interfaces() { std::filesystem::remove_all(root_); }
  void add(const std::string& name, const std::string& uevent = "") {
    std::filesystem::create_directories(at(name));
    std::ofstream(at(name) / "uevent") << "INTERFACE=" << name << "\nIFINDEX=7\n" << uevent;
  }
  void add_card(const std::string& name) {
    add(name);
    std::filesystem::create_directories(at(name) / "device");
  }
  void add_bridge(const std::string& name, const std::vector<std::string>& ports) {
    add(name, "DEVTYPE=bridge\n");
    std::filesystem::create_directories(at(name) / "bridge");
    std::filesystem::create_directories(at(name) / "brif");
    for (const std::string& port : ports) std::filesystem::create_directories(at(name) / "brif" / port);
  }
  [[nodiscard]] bool is_internal(const char* name) const { return sys::is_internal_bridge(root_.c_str(), name); }

 private:
  [[nodiscard]] std::filesystem::path at(const std::string& name) const { return root_ / "sys/class/net" / name; }
  std::filesystem::path root_;
};

TEST(SysBridges, InternalOnesLeadToNoCard) {
  Interfaces net;
  net.add_card("eth0");
  net.add("eth0.100", "DEVTYPE=vlan\n");
  net.add("bond0", "DEVTYPE=bond\n");
  net.add("veth1");
  net.add("tap0");
  net.add_bridge("docker0", {});
  net.add_bridge("virbr0", {"tap0", "veth1"});
  net.add_bridge("br0", {"tap0", "eth0"});
  net.add_bridge("br1", {"eth0.100"});
  net.add_bridge("br2", {"bond0", "veth1"});
  for (const char* name : {"docker0", "virbr0"}) EXPECT_TRUE(net.is_internal(name)) << name;
  for (const char* name : {"br0", "br1", "br2", "eth0", "veth1", "tap0", "missing"})
    EXPECT_FALSE(net.is_internal(name)) << name;
}

}  // namespace
}  // namespace stretto::test
