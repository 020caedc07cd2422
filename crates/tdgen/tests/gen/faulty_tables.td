class GenericEnum { string FilterClass; string NameField; string ValueField; }
class GenericTable { string FilterClass; string CppTypeName; list<string> Fields; list<string> PrimaryKey; string PrimaryKeyName; }
class SearchIndex { GenericTable Table; list<string> Key; }
class Row<int n> { int N = n; dag D = ?; string S = "x"; int U = ?; }
def a : Row<1>; def b : Row<1>;
def NoClass : GenericTable { let FilterClass = "Missing"; let Fields = ["N"]; }
def NoField : GenericTable { let FilterClass = "Row"; let Fields = ["Nope"]; }
def BadType : GenericTable { let FilterClass = "Row"; let Fields = ["D"]; }
def Unset : GenericTable { let FilterClass = "Row"; let Fields = ["U"]; }
def SameKey : GenericTable { let FilterClass = "Row"; let Fields = ["N", "S"]; let PrimaryKey = ["N"]; }
def BadKey : GenericTable { let FilterClass = "Row"; let Fields = ["N"]; let PrimaryKey = ["S"]; }
def BadIndex : SearchIndex { let Table = SameKey; let Key = ["Q"]; }
def SameValue : GenericEnum { let FilterClass = "Row"; let ValueField = "N"; }
