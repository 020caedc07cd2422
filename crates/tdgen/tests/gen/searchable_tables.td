class GenericEnum { string FilterClass; string NameField; string ValueField; }
class GenericTable { string FilterClass; string CppTypeName; list<string> Fields; list<string> PrimaryKey; string PrimaryKeyName; bit PrimaryKeyEarlyOut = 0; bit PrimaryKeyReturnRange = 0; }
class SearchIndex { GenericTable Table; list<string> Key; bit EarlyOut = 0; bit ReturnRange = 0; }
class Kind<int v> { int Value = v; } def Fast : Kind<1>; def Slow : Kind<5>;
def KindEnum : GenericEnum { let FilterClass = "Kind"; let ValueField = "Value"; }
class Reg<string n, bits<10> e, Kind k, bit w> { string Name = n; bits<10> Encoding = e; Kind K = k; bit Writable = w; int Cost = !add(e, -3); code T = [{ "x" }]; }
def : Reg<"b", 7, Fast, 1>; def : Reg<"a", 12, Slow, 0>; def : Reg<"c", 3, Fast, 0>;
def Regs : GenericTable { let FilterClass = "Reg"; let CppTypeName = "RegRow"; let Fields = ["Name", "Encoding", "K", "Writable", "Cost", "T"]; string TypeOf_K = "KindEnum"; let PrimaryKey = ["Encoding"]; let PrimaryKeyName = "lookupRegByEncoding"; }
def lookupRegByName : SearchIndex { let Table = Regs; let Key = ["Name"]; }
def regsOfKind : SearchIndex { let Table = Regs; let Key = ["K", "Writable"]; let ReturnRange = 1; }
